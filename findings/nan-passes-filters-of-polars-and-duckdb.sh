#!/usr/bin/env bash
# NaN is greater than every number for polars and DuckDB: a filter for scores above 0.5 keeps rows without a score.
#
# Seen with: polars 2.1.0, duckdb 2.0.1, pandas 3.1.1, pyarrow 26.0.1, CPython 3.11.
#
# In floating point no comparison with NaN is true, and pandas and pyarrow go by that. polars and DuckDB order all
# numbers, with NaN at the top, so that x > 0.5 selects NaN, too, and the best row is one whose score could not be
# computed. DuckDB takes NaN in a pandas table for missing, and the same rows in a Parquet file for numbers: moving the
# table to a file changes the result. In polars, max and arg_max leave NaN out, and top_k has it first.
#
# Output seen:
#   score > 0.5, pandas: [0.9]
#   score > 0.5, pyarrow: [0.9]
#   score > 0.5, polars: [nan, 0.9]
#   score > 0.5, DuckDB of pandas: [0.9]
#   score > 0.5, DuckDB of Parquet: [nan, 0.9]
#   best, polars: max 0.9, arg_max 1, top_k nan
#   best, DuckDB: of pandas 0.9, of Parquet nan
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  polars==2.1.0 duckdb==2.0.1 pandas==3.1.1 pyarrow==26.0.1

cat > filters.py <<'PYTHON'
import duckdb
import pandas
import polars
import pyarrow.parquet

scores = polars.DataFrame({"score": [float("nan"), 0.9, 0.1]})
scores.write_parquet("scores.parquet")
frame = pandas.read_parquet("scores.parquet")


def by_duckdb(query: str) -> list[float]:
    return [row[0] for row in duckdb.sql(query).fetchall()]


print("score > 0.5, pandas:", frame[frame["score"] > 0.5]["score"].tolist())
table = pyarrow.parquet.read_table("scores.parquet", filters=[("score", ">", 0.5)])
print("score > 0.5, pyarrow:", table["score"].to_pylist())
print("score > 0.5, polars:", scores.filter(polars.col("score") > 0.5)["score"].to_list())
print("score > 0.5, DuckDB of pandas:", by_duckdb("SELECT score FROM frame WHERE score > 0.5"))
print("score > 0.5, DuckDB of Parquet:", by_duckdb("SELECT score FROM 'scores.parquet' WHERE score > 0.5"))
column = scores["score"]
print(f"best, polars: max {column.max()}, arg_max {column.arg_max()}, top_k {column.top_k(1)[0]}")
of_pandas, of_parquet = (by_duckdb(f"SELECT max(score) FROM {each}")[0] for each in ("frame", "'scores.parquet'"))
print(f"best, DuckDB: of pandas {of_pandas}, of Parquet {of_parquet}")
PYTHON

venv/bin/python filters.py | tee found
diff seen found
