#!/usr/bin/env bash
# A list of texts in Parquet that pandas reads and writes to CSV comes back from ast.literal_eval as one joined text.
#
# Seen with: pandas 3.1.1, numpy 2.4.6, pyarrow 26.0.1.
#
# pandas reads a Parquet list as a NumPy array and writes it without commas. Python joins adjacent string literals, so
# the cell is a valid list of one item, without an error. An array of numbers is a syntax error instead.
#
# Output seen:
#   CSV cell: ['sport' 'europe']; literal_eval: ['sporteurope']
#
# Fails if this line differs.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pandas==3.1.1 numpy==2.4.6 pyarrow==26.0.1
"$folder/venv/bin/python" - "$folder" <<'END'
import ast
import sys

import pandas as pd

file = f"{sys.argv[1]}/rows"
pd.DataFrame({"labels": [["sport", "europe"]]}).to_parquet(f"{file}.parquet")
pd.read_parquet(f"{file}.parquet").to_csv(f"{file}.csv", index=False)
cell = pd.read_csv(f"{file}.csv")["labels"][0]
found = ast.literal_eval(cell)
print(f"CSV cell: {cell}; literal_eval: {found}")
sys.exit((cell, found) != ("['sport' 'europe']", ["sporteurope"]))
END
