#!/usr/bin/env bash
# filters of pandas' read_parquet drop rows without a label for != "spam", and keep them for not in ["spam"].
#
# Seen with: pandas 3.1.1, pyarrow 26.0.1, polars 2.1.0, duckdb 2.0.1, CPython 3.11.
#
# A comparison with a missing value is missing in Arrow, as in SQL, and rows for which the filter is missing are left
# out: moving a condition from the table into read_parquet, to read less, loses all rows without a value. "not in" is
# computed in another way, and keeps them, as the table's own != and isin do. In DuckDB and polars, both drop them.
#
# Output seen:
#   pandas, table: rows != [2, 3], rows not in [2, 3]
#   pandas, filters: rows != [2], rows not in [2, 3]
#   polars: rows != [2], rows not in [2]
#   DuckDB: rows != [2], rows not in [2]
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pandas==3.1.1 pyarrow==26.0.1 polars==2.1.0 duckdb==2.0.1

cat > filters.py <<'PYTHON'
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

pq.write_table(pa.table({"label": ["spam", "ham", None], "row": [1, 2, 3]}), "rows.parquet")
table = pd.read_parquet("rows.parquet")
ways = {
    "pandas, table": (table[table["label"] != "spam"], table[~table["label"].isin(["spam"])]),
    "pandas, filters": [
        pd.read_parquet("rows.parquet", filters=[condition])
        for condition in (("label", "!=", "spam"), ("label", "not in", ["spam"]))
    ],
    "polars": [
        pl.scan_parquet("rows.parquet").filter(condition).collect()
        for condition in (pl.col("label") != "spam", ~pl.col("label").is_in(["spam"]))
    ],
    "DuckDB": [
        duckdb.sql(f"from 'rows.parquet' where label {condition}").df()
        for condition in ("!= 'spam'", "not in ('spam')")
    ],
}
for name, (unequal, not_in) in ways.items():
    print(f"{name}: rows != {list(unequal['row'])}, rows not in {list(not_in['row'])}")
PYTHON

venv/bin/python filters.py | tee found
diff seen found
