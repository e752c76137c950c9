#!/usr/bin/env bash
# A column of texts comes back as numbers, dates or flags from a Parquet folder that it divides, by each reader its own.
#
# Seen with: pandas 3.1.1, polars 2.1.0, duckdb 2.0.1, pyarrow 26.0.1, CPython 3.11.
#
# Parquet files hold types, but a column of partition_cols is kept in names of folders alone, and each reader guesses
# its type. pandas, by pyarrow, makes 007 the number 7, and polars does, too; DuckDB keeps it. polars and DuckDB make
# dates of texts that look so, pandas does not. "true" is a flag for polars only. As the guess takes all folders
# together, one more code changes the type of all of them, and a model that was trained on "12" gets 12.
#
# Output seen:
#   codes 007 and 12: pandas [7, 12], polars [7, 12], DuckDB ['007', '12']
#   codes 007, 12 and x: pandas ['007', '12', 'x'], polars ['007', '12', 'x'], DuckDB ['007', '12', 'x']
#   days: pandas ['2024-01-02'], polars [datetime.date(2024, 1, 2)], DuckDB [datetime.date(2024, 1, 2)]
#   answers: pandas ['false', 'true'], polars [False, True], DuckDB ['false', 'true']
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  pandas==3.1.1 polars==2.1.0 duckdb==2.0.1 pyarrow==26.0.1

cat > folders.py <<'PYTHON'
import duckdb
import pandas
import polars


def shown(what: str, folder: str, values: list[str]) -> None:
    pandas.DataFrame({"key": values, "row": range(len(values))}).to_parquet(folder, partition_cols=["key"])
    by_pandas = pandas.read_parquet(folder).sort_values("row")["key"].tolist()
    by_polars = polars.read_parquet(f"{folder}/").sort("row")["key"].to_list()
    files = f"read_parquet('{folder}/**/*.parquet', hive_partitioning = true)"
    by_duckdb = [row[0] for row in duckdb.sql(f"SELECT key FROM {files} ORDER BY row").fetchall()]
    print(f"{what}: pandas {by_pandas}, polars {by_polars}, DuckDB {by_duckdb}")


shown("codes 007 and 12", "two", ["007", "12"])
shown("codes 007, 12 and x", "three", ["007", "12", "x"])
shown("days", "days", ["2024-01-02"])
shown("answers", "answers", ["false", "true"])
PYTHON

venv/bin/python folders.py | tee found
diff seen found
