#!/usr/bin/env bash
# pandas and DuckDB join rows of different 64-bit ids, if one of the two tables has an id that is missing.
#
# Seen with: pandas 3.1.1, duckdb 2.0.1, polars 2.1.0, pyarrow 26.0.1, numpy 2.4.6, CPython 3.11.
#
# A missing value makes a column of ids float64 in pandas, and a join of it with int64 compares both as float64, in
# which ids above 2**53 are two or more apart. The rounded id finds its neighbors, so one label is joined to several
# rows, all but one of them wrong, and no warning is given, as there is for floats that are no whole numbers. DuckDB
# casts in the same way. polars refuses the join. dtype="Int64" keeps ids beside missing values.
#
# Output seen:
#   ids 1000000000000000000 to 1000000000000000003, label of 1000000000000000001
#   pandas: labels for 4 rows
#   DuckDB: labels for 4 rows
#   polars: SchemaError
#   pandas, dtype="Int64": labels for 1 rows
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  pandas==3.1.1 duckdb==2.0.1 polars==2.1.0 pyarrow==26.0.1 numpy==2.4.6

cat > joins.py <<'PYTHON'
import warnings
from pathlib import Path

import duckdb
import pandas
import polars

warnings.simplefilter("error")
first = 10**18
rows = pandas.DataFrame({"id": range(first, first + 4), "text": list("abcd")})
Path("labels.csv").write_text(f"id,label\n{first + 1},spam\n,ham\n")
labels = pandas.read_csv("labels.csv")

print(f"ids {rows['id'].min()} to {rows['id'].max()}, label of {first + 1}")
print(f"pandas: labels for {len(rows.merge(labels, on='id'))} rows")
print(f"DuckDB: labels for {len(duckdb.sql('SELECT * FROM rows JOIN labels USING (id)').fetchall())} rows")
try:
    print(len(polars.from_pandas(rows).join(polars.from_pandas(labels), on="id")))
except polars.exceptions.SchemaError as error:
    print(f"polars: {type(error).__name__}")
labels = pandas.read_csv("labels.csv", dtype={"id": "Int64"})
print(f'pandas, dtype="Int64": labels for {len(rows.merge(labels, on="id"))} rows')
PYTHON

venv/bin/python joins.py | tee found
diff seen found
