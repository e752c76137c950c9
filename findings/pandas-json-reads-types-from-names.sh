#!/usr/bin/env bash
# pandas reads numbers of JSON as dates because of their column's name, and texts of digits as numbers.
#
# Seen with: pandas 3.1.1, numpy 2.4.6, CPython 3.11.
#
# JSON says which value is a text and which a number. read_json converts both again: a column whose name ends with _at
# or _time, or begins with timestamp, becomes a time where its numbers could be seconds since 1970, here after 1971. So
# seconds of play become a day. Texts that are all digits become integers: leading zeros are lost, and ids of 20 digits
# become equal. polars, pyarrow and datasets read the same file as it is written. dtype=False turns both off.
#
# Output seen:
#   minutes_played: 40000000
#   play_time: 1971-04-08 23:06:40
#   postcode: 1067
#   ids: 2 different texts, 1 different number
#   dtype=False: 40000000, '01067', 2 different ids
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pandas==3.1.1 numpy==2.4.6

cat > read.py <<'PYTHON'
import io
import json

import pandas as pd

ids = ["12345678901234567890", "12345678901234567891"]
rows = [{"minutes_played": 40_000_000, "play_time": 40_000_000, "postcode": "01067", "id": each} for each in ids]
lines = "\n".join(map(json.dumps, rows))
read = pd.read_json(io.StringIO(lines), lines=True)
for name in ("minutes_played", "play_time", "postcode"):
    print(f"{name}: {read[name][0]}")
print(f"ids: {len(set(ids))} different texts, {read['id'].nunique()} different number")
plain = pd.read_json(io.StringIO(lines), lines=True, dtype=False)
found = f"{plain['play_time'][0]}, {plain['postcode'][0]!r}, {plain['id'].nunique()} different ids"
print("dtype=False:", found)
PYTHON

venv/bin/python read.py | tee found
diff seen found
