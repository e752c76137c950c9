#!/usr/bin/env bash
# pyarrow reads ids of 64 bits without a sign from CSV and JSON as floating-point numbers, and rows get the same id.
#
# Seen with: pyarrow 26.0.1, pandas 3.1.1, polars 2.1.0, duckdb 2.0.1, CPython 3.11.
#
# Its guess for whole numbers ends at 2**63 - 1. Half of all hashes of 64 bits are above, and one of them makes the
# whole column double: each id loses its last three or four digits, also the small ones that would have fit, and joins
# and splits by id mix rows. pandas has uint64, and float64 by engine="pyarrow"; polars and DuckDB have 128 bits. Ray
# Data reads CSV by pyarrow. column_types={"id": pyarrow.uint64()} is right.
#
# Output seen:
#   pyarrow, CSV: float, 2 different ids of 4, all right: False
#   pyarrow, JSON Lines: float, 2 different ids of 4, all right: False
#   pyarrow, CSV as uint64: int, 4 different ids of 4, all right: True
#   pandas, CSV: int, 4 different ids of 4, all right: True
#   pandas, CSV, engine="pyarrow": float, 2 different ids of 4, all right: False
#   polars, CSV: int, 4 different ids of 4, all right: True
#   DuckDB, CSV: int, 4 different ids of 4, all right: True
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pyarrow==26.0.1 pandas==3.1.1 polars==2.1.0 duckdb==2.0.1

cat > ids.py <<'PYTHON'
import json
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
from pyarrow import csv
from pyarrow import json as arrow_json

IDS = [2**63 + 1, 2**63 + 2, 2**62 + 1, 2**62 + 2]
Path("ids.csv").write_text("id\n" + "".join(f"{number}\n" for number in IDS))
Path("ids.jsonl").write_text("".join(json.dumps({"id": number}) + "\n" for number in IDS))
typed = csv.ConvertOptions(column_types={"id": pa.uint64()})
readers = {
    "pyarrow, CSV": lambda: csv.read_csv("ids.csv")["id"].to_pylist(),
    "pyarrow, JSON Lines": lambda: arrow_json.read_json("ids.jsonl")["id"].to_pylist(),
    "pyarrow, CSV as uint64": lambda: csv.read_csv("ids.csv", convert_options=typed)["id"].to_pylist(),
    "pandas, CSV": lambda: pd.read_csv("ids.csv")["id"].tolist(),
    'pandas, CSV, engine="pyarrow"': lambda: pd.read_csv("ids.csv", engine="pyarrow")["id"].tolist(),
    "polars, CSV": lambda: pl.read_csv("ids.csv")["id"].to_list(),
    "DuckDB, CSV": lambda: [number for (number,) in duckdb.sql("from 'ids.csv'").fetchall()],
}
for name, read in readers.items():
    found = read()
    kind = type(found[0]).__name__
    print(f"{name}: {kind}, {len(set(found))} different ids of {len(IDS)}, all right: {found == IDS}")
PYTHON

venv/bin/python ids.py | tee found
diff seen found
