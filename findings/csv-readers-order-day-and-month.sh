#!/usr/bin/env bash
# DuckDB and polars read 05/06/2024 in a CSV file as 5 June, pandas as 6 May, and none says that it guessed.
#
# Seen with: duckdb 2.0.1, pandas 3.1.1, polars 2.1.0, CPython 3.11.
#
# A column of dates that all fit both ways is ambiguous. DuckDB, and polars with try_parse_dates, take the day first,
# pandas.to_datetime the month. The format belongs to one file: of two months of one export, the file that has a day
# above 12 is read by DuckDB with the month first, and the other one with the day first. polars leaves texts in the
# former.
#
# Output seen:
#   05/06/2024, DuckDB: 2024-06-05
#   05/06/2024, pandas: 2024-05-06
#   05/06/2024, polars: 2024-06-05
#   05/06/2024 beside 05/31/2024, DuckDB: 2024-05-06
#   05/06/2024 beside 05/31/2024, polars: 05/06/2024
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check duckdb==2.0.1 pandas==3.1.1 polars==2.1.0

cat > dates.py <<'PYTHON'
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl

DATE = "05/06/2024"


def first(*dates):
    Path("dates.csv").write_text("\n".join(["when", *dates]) + "\n")
    return duckdb.sql("from 'dates.csv'").fetchall()[0][0]


print(f"{DATE}, DuckDB:", first(DATE))
print(f"{DATE}, pandas:", pd.to_datetime(pd.read_csv("dates.csv")["when"])[0].date())
print(f"{DATE}, polars:", pl.read_csv("dates.csv", try_parse_dates=True)["when"][0])
print(f"{DATE} beside 05/31/2024, DuckDB:", first(DATE, "05/31/2024"))
print(f"{DATE} beside 05/31/2024, polars:", pl.read_csv("dates.csv", try_parse_dates=True)["when"][0])
PYTHON

venv/bin/python dates.py | tee found
diff seen found
