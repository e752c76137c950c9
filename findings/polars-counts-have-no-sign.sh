#!/usr/bin/env bash
# polars counts without a sign, so that two counts or lengths subtracted are four billion where they should be negative.
#
# Seen with: polars 2.1.0, pandas 3.1.1, duckdb 2.0.1, pyarrow 26.0.1, CPython 3.11.
#
# len(), count(), sums of flags, lengths of texts and lists, and numbers of rows are UInt32. Their difference stays
# UInt32: one win minus two losses, or a title that is shorter than its summary, becomes 4294967295, and such rows
# dominate means, scaling and every model. Nothing is raised. diff() of the same counts gives Int64, and DuckDB and
# pandas count with a sign.
#
# Output seen:
#   wins minus losses: polars [0, 4294967295], pandas [0, -1], DuckDB [0, -1]
#   length of title minus length of summary: polars [2, 4294967295], pandas [2, -1], DuckDB [2, -1]
#   polars, diff of the lengths: [None, -2]
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

cat > counts.py <<'PYTHON'
import duckdb
import polars
from polars import col

games = polars.DataFrame({"player": ["ann", "ann", "bob"], "won": [True, False, False]})
texts = polars.DataFrame({"title": ["Python", "Java"], "summary": ["fast", "slow!"]})

difference = col("won").sum() - (~col("won")).sum()
by_polars = games.group_by("player", maintain_order=True).agg(difference)["won"].to_list()
by_pandas = games.to_pandas().groupby("player")["won"].apply(lambda won: won.sum() - (~won).sum()).tolist()
by_duckdb = duckdb.sql(
    "SELECT count(*) FILTER (won) - count(*) FILTER (NOT won) FROM games GROUP BY player ORDER BY player"
).fetchall()
print(f"wins minus losses: polars {by_polars}, pandas {by_pandas}, DuckDB {[row[0] for row in by_duckdb]}")

title, summary = col("title").str.len_chars(), col("summary").str.len_chars()
by_polars = texts.select(title - summary)["title"].to_list()
frame = texts.to_pandas()
by_pandas = (frame["title"].str.len() - frame["summary"].str.len()).tolist()
by_duckdb = [row[0] for row in duckdb.sql("SELECT length(title) - length(summary) FROM texts").fetchall()]
print(f"length of title minus length of summary: polars {by_polars}, pandas {by_pandas}, DuckDB {by_duckdb}")
print(f"polars, diff of the lengths: {texts.select(title.diff())['title'].to_list()}")
PYTHON

venv/bin/python counts.py | tee found
diff seen found
