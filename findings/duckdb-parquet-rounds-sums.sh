#!/usr/bin/env bash
# DuckDB writes a sum of 64-bit integers to Parquet as a rounded floating-point number.
#
# Seen with: duckdb 2.0.1, pyarrow 26.0.1, pandas 3.1.1, CPython 3.11.
#
# sum() of integers is a HUGEINT of 128 bits. Parquet has no such integer, and DuckDB writes a DOUBLE instead of a
# decimal of 38 digits, which it does hand to Arrow. Sums, ids and hashes above 2**53 lose their last digits without a
# word, and different ones become equal. df() for pandas does the same. A cast to BIGINT keeps them.
#
# Output seen:
#   DuckDB: HUGEINT 9007199254740993
#   Parquet: double 9007199254740992
#   pandas: float64 9007199254740992
#   Parquet after a cast: int64 9007199254740993
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check duckdb==2.0.1 pyarrow==26.0.1 pandas==3.1.1 numpy==2.4.6

cat > sums.py <<'PYTHON'
import duckdb
import pyarrow.parquet as pq

QUERY = "SELECT sum(number) AS total FROM (VALUES (9007199254740992), (1)) numbers(number)"


def written(query):
    duckdb.sql(f"COPY ({query}) TO 'total.parquet'")
    column = pq.read_table("total.parquet")["total"]
    return f"{column.type} {int(column[0].as_py())}"


print("DuckDB:", *duckdb.sql(QUERY).types, duckdb.sql(QUERY).fetchall()[0][0])
print("Parquet:", written(QUERY))
frame = duckdb.sql(QUERY).df()["total"]
print("pandas:", frame.dtype, int(frame[0]))
print("Parquet after a cast:", written(QUERY.replace("sum(number)", "sum(number)::BIGINT")))
PYTHON

venv/bin/python sums.py | tee found
diff seen found
