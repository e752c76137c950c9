#!/usr/bin/env bash
# DuckDB's sample of 10 percent is all rows of a small table, or none, and of a larger one a few runs of neighbors.
#
# Seen with: duckdb 2.0.1, CPython 3.11.
#
# USING SAMPLE with a percentage draws whole vectors of 2,048 rows, not rows: "10%" of 1,000 rows are 0 or 1,000 of
# them. The rows of a vector stand beside each other, so a set that is sorted by class, user or day gives a sample of
# few of these. Neither a message nor the number of rows shows it in a large table. "10 PERCENT (bernoulli)" draws each
# row by itself, and a number of rows, "100 ROWS", is exact.
#
# Output seen:
#   sizes of 200 samples of 10% of 1000 rows: [0, 1000]
#   10% of 200000 rows of 200 days: never more than 120 days: True
#   the same, bernoulli: always 200 days: True
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check duckdb==2.0.1

cat > sample.py <<'PYTHON'
import duckdb

duckdb.sql("CREATE TABLE small AS SELECT range AS row FROM range(1000)")
duckdb.sql("CREATE TABLE large AS SELECT range AS row, range // 1000 AS day FROM range(200000)")


def rows_and_days(sample, table="large", days="count(DISTINCT day)"):
    return duckdb.sql(f"SELECT count(*), {days} FROM {table} USING SAMPLE {sample}").fetchall()[0]


sizes = {rows_and_days("10%", "small", "0")[0] for _ in range(200)}
print("sizes of 200 samples of 10% of 1000 rows:", sorted(sizes))
drawn = [rows_and_days("10%") for _ in range(20)]
print("10% of 200000 rows of 200 days: never more than 120 days:", all(days <= 120 for _, days in drawn))
bernoulli = [rows_and_days("10 PERCENT (bernoulli)") for _ in range(20)]
print("the same, bernoulli: always 200 days:", all(days == 200 for _, days in bernoulli))
PYTHON

venv/bin/python sample.py | tee found
diff seen found
