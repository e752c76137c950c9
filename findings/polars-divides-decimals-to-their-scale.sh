#!/usr/bin/env bash
# polars divides decimals to the places that the dividend has: 0.01 / 3.00 is 0.00.
#
# Seen with: polars 2.1.0, duckdb 2.0.1, pyarrow 26.0.1, CPython 3.11.
#
# Prices come from databases and Parquet as decimals with two places. A ratio of two such columns has two places in
# polars, too: ratios below 0.005 are zero, and a feature that should have many values has few. The mean of the same
# column is a float with all digits. DuckDB gives a float, and pyarrow a decimal with more places, for the same file.
#
# Output seen:
#   polars: 0.00 0.33
#   polars, cast first: 0.003333333333333333 0.3333333333333333
#   DuckDB: 0.0033333333333333335 0.3333333333333333
#   pyarrow: 0.00333333333 0.33333333333
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check polars==2.1.0 duckdb==2.0.1 pyarrow==26.0.1

cat > divide.py <<'PYTHON'
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

money = pa.decimal128(10, 2)
table = pa.table({"fee": pa.array(["0.01", "1.00"]).cast(money), "price": pa.array(["3.00", "3.00"]).cast(money)})
pq.write_table(table, "prices.parquet")
print("polars:", *pl.read_parquet("prices.parquet").select(pl.col("fee") / pl.col("price")).to_series())
print("polars, cast first:", *pl.read_parquet("prices.parquet").select(pl.col("fee").cast(float) / 3).to_series())
print("DuckDB:", *(row[0] for row in duckdb.sql("SELECT fee / price FROM 'prices.parquet'").fetchall()))
print("pyarrow:", *pc.divide(table["fee"], table["price"]).to_pylist())
PYTHON

venv/bin/python divide.py | tee found
diff seen found
