#!/usr/bin/env bash
# DuckDB rounds the numbers of a Parquet file to the type that the first file of the folder has.
#
# Seen with: duckdb 2.0.1, pyarrow 26.0.1, CPython 3.11.
#
# A column of a table that is written in parts has whole numbers in one part, which are int64 there, and others in the
# next. DuckDB casts every file to the types of the first, and its casts round: 2.5 becomes 2 and 3.5 becomes 4, without
# a word. Columns that only later files have are left out. With the files in another order, nothing is lost. pyarrow and
# polars raise. union_by_name=true takes the wider type and all columns.
#
# Output seen:
#   price of the files: [1, 2] then [2.5, 3.5]
#   DuckDB: [1, 2, 2, 4]
#   DuckDB, other order: [2.5, 3.5, 1.0, 2.0]
#   DuckDB, union_by_name: [1.0, 2.0, 2.5, 3.5]
#   pyarrow: Float value 2.500000 was truncated converting to int64
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check duckdb==2.0.1 pyarrow==26.0.1

cat > read.py <<'PYTHON'
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

PARTS = {"2025": [1, 2], "2026": [2.5, 3.5]}
Path("parts").mkdir()
for name, prices in PARTS.items():
    pq.write_table(pa.table({"price": prices}), f"parts/{name}.parquet")


def prices(source):
    return [price for (price,) in duckdb.sql(f"select price from read_parquet({source})").fetchall()]


print("price of the files:", " then ".join(map(str, PARTS.values())))
print("DuckDB:", prices("'parts/*.parquet'"))
print("DuckDB, other order:", prices("['parts/2026.parquet', 'parts/2025.parquet']"))
print("DuckDB, union_by_name:", prices("'parts/*.parquet', union_by_name=true"))
try:
    print("pyarrow:", pq.read_table("parts")["price"].to_pylist())
except pa.ArrowInvalid as error:
    print("pyarrow:", error)
PYTHON

venv/bin/python read.py | tee found
diff seen found
