#!/usr/bin/env bash
# pyarrow gives every object inside a row the keys of all other rows' objects, and drops such keys at the top.
#
# Seen with: pyarrow 26.0.1, CPython 3.11, Linux x86-64.
#
# Rows such as tool calls have objects whose keys differ from row to row. Table.from_pylist takes the top level's keys
# from the first row alone: a key that comes later is dropped without a word. Inside, the keys of all rows are united,
# and read back from Parquet, each object has all of them, with None for those that it never had: what was left out
# cannot be told from null. An object that is empty in all rows cannot be written at all.
#
# Output seen:
#   {"city": "Oslo", "from": null, "to": null}
#   {"city": null, "from": "EUR", "to": "USD"}
#   later key at the top: [{"a": 1}, {"a": 2}]
#   only empty objects: ArrowNotImplementedError
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pyarrow==26.0.1

cat > pad.py <<'PYTHON'
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq


def through_parquet(rows):
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), file)
    return pq.read_table(file).to_pylist()


for row in through_parquet([{"arguments": {"city": "Oslo"}}, {"arguments": {"from": "EUR", "to": "USD"}}]):
    print(json.dumps(row["arguments"]))
print("later key at the top:", json.dumps(through_parquet([{"a": 1}, {"a": 2, "b": 3}])))
try:
    print("only empty objects:", through_parquet([{"arguments": {}}, {"arguments": {}}]))
except pa.ArrowNotImplementedError as error:
    print("only empty objects:", type(error).__name__)
PYTHON

venv/bin/python pad.py | tee found
diff seen found
