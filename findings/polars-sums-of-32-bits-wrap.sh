#!/usr/bin/env bash
# polars' sum of 32-bit integers is a 32-bit integer, and wraps around to a negative number.
#
# Seen with: polars 2.1.0, pandas 3.1.1, duckdb 2.0.1, pyarrow 26.0.1, CPython 3.11.
#
# Columns of 8 and 16 bits are summed in 64 bits, which looks like a rule; those of 32 bits are not. Parquet files have
# such columns of bytes, tokens or cents, and a sum over a group passes 2,147,483,647 soon. Sums across columns wrap at
# any width: two columns of 8-bit pixels or counts at 255, and mean_horizontal divides the wrapped sum. No error or
# warning is given. DuckDB, pandas and pyarrow sum the same column in 64 bits or more.
#
# Output seen:
#   sum of 2147483647 and 5: DuckDB 2147483652, pandas 2147483652, pyarrow 2147483652, polars -2147483644
#   polars, in a group: -2147483644, of 16 bits: 32772, cast first: 2147483652
#   polars, 200 and 100 in columns of 8 bits: sum_horizontal 44, mean_horizontal 22.0
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  polars==2.1.0 pandas==3.1.1 duckdb==2.0.1 pyarrow==26.0.1

cat > sums.py <<'PYTHON'
import duckdb
import polars
import pyarrow.compute

rows = polars.DataFrame({"user": [1, 1], "tokens": [2**31 - 1, 5], "steps": [2**15 - 1, 5]}).cast(
    {"tokens": polars.Int32, "steps": polars.Int16}
)
print(
    f"sum of {rows['tokens'][0]} and {rows['tokens'][1]}:",
    f"DuckDB {duckdb.sql('SELECT sum(tokens) FROM rows').fetchall()[0][0]},",
    f"pandas {rows.to_pandas()['tokens'].sum()},",
    f"pyarrow {pyarrow.compute.sum(rows['tokens'].to_arrow())},",
    f"polars {rows['tokens'].sum()}",
)
tokens, steps = polars.col("tokens"), polars.col("steps")
sums = rows.group_by("user").agg(tokens.sum(), steps.sum(), wide=tokens.cast(polars.Int64).sum())
print(f"polars, in a group: {sums['tokens'][0]}, of 16 bits: {sums['steps'][0]}, cast first: {sums['wide'][0]}")

pixels = polars.DataFrame({"left": [200], "right": [100]}, schema={"left": polars.UInt8, "right": polars.UInt8})
total = pixels.select(polars.sum_horizontal("left", "right")).item()
mean = pixels.select(polars.mean_horizontal("left", "right")).item()
print(f"polars, 200 and 100 in columns of 8 bits: sum_horizontal {total}, mean_horizontal {mean}")
PYTHON

venv/bin/python sums.py | tee found
diff seen found
