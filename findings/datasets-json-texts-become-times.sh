#!/usr/bin/env bash
# Texts of JSON Lines that look like dates come back from datasets as numbers of milliseconds.
#
# Seen with: datasets 5.2.0, pyarrow 26.0.1, CPython 3.11.
#
# JSON has no dates, but pyarrow's reader, by which datasets reads JSON, makes timestamps of a column whose strings are
# all dates, inside of lists and objects, too. The content of a message is then no text. to_json writes timestamps as
# numbers, so the file that is written holds no text either. One string of another form in the same block of the file
# leaves all of its strings as they are: the type depends on which rows stand together.
#
# Output seen:
#   read: [{'role': 'user', 'content': datetime.datetime(2024, 1, 2, 0, 0)}]
#   written: {"messages":[{"role":"user","content":1704153600000}]}
#   with a row of other text: [{'role': 'user', 'content': '2024-01-02'}]
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check datasets==5.2.0 pyarrow==26.0.1

cat > read.py <<'PYTHON'
import json
from pathlib import Path

from datasets import disable_progress_bars, load_dataset

disable_progress_bars()


def load(*contents):
    rows = [{"messages": [{"role": "user", "content": content}]} for content in contents]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return load_dataset("json", data_files="rows.jsonl", split="train")


rows = load("2024-01-02", "2024-02-01")
print("read:", rows[0]["messages"])
rows.to_json("written.jsonl")
print("written:", Path("written.jsonl").read_text().splitlines()[0])
print("with a row of other text:", load("2024-01-02", "on Friday")[0]["messages"])
PYTHON

HF_HOME="$folder/hub" HF_HUB_OFFLINE=1 venv/bin/python read.py 2>/dev/null | tee found
diff seen found
