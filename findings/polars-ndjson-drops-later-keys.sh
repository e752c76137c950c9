#!/usr/bin/env bash
# polars drops a key of JSON Lines that first occurs after row 100.
#
# Seen with: polars 2.1.0, CPython 3.11.
#
# read_ndjson and scan_ndjson take the columns from the first 100 rows. A number where these have integers is an error
# later on, but a key that they lack is ignored: a rare field, such as a second label, a correction or a weight, has no
# column, and no row is missing. With the same row among the first 100, the column is there. infer_schema_length=None
# reads all rows first.
#
# Output seen:
#   label in row 100: ['text', 'label']
#   label in row 101: ['text']
#   label in row 101, infer_schema_length=None: ['text', 'label']
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check polars==2.1.0

cat > read.py <<'PYTHON'
import json
from pathlib import Path

import polars as pl

plain, rare = {"text": "a"}, {"text": "b", "label": "spam"}


def columns(rows, **options):
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return pl.read_ndjson("rows.jsonl", **options).columns


print("label in row 100:", columns([plain] * 99 + [rare]))
print("label in row 101:", columns([plain] * 100 + [rare]))
print("label in row 101, infer_schema_length=None:", columns([plain] * 100 + [rare], infer_schema_length=None))
PYTHON

venv/bin/python read.py | tee found
diff seen found
