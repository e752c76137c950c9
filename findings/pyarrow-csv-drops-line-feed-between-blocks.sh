#!/usr/bin/env bash
# pyarrow drops the line feed of a quoted Windows line break where one block of a CSV file ends and the next begins.
#
# Seen with: pyarrow 26.0.1, CPython 3.11, Linux x86-64.
#
# With ParseOptions(newlines_in_values=True), a quoted value may have several lines. read_csv and open_csv read a file
# in blocks of ReadOptions.block_size bytes (1 MiB). Where a block ends in a carriage return, a line feed at the start
# of the next one is dropped, also within quotes. Whether a text is changed depends on its position in the file, so at
# most one text per MiB is, without an error; it is another one after a row is added above it, or with another
# block_size. Line breaks of one character ("\n") are kept.
#
# Output seen:
#   100000 equal texts, read: {'one\r\ntwo': 99999, 'one\rtwo': 1}
#   the same with a header that is 1 byte longer: {'one\r\ntwo': 100000}
#   the first file with block_size 4 MiB: {'one\r\ntwo': 100000}
#
# Fails if all texts of the first file are kept.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pyarrow==26.0.1

cat > "$folder/read.py" <<'PYTHON'
import io
import sys
from collections import Counter

from pyarrow import csv

ROWS = '"one\r\ntwo",1\r\n' * 100_000


def texts(header: str, block_size: int) -> dict[str, int]:
    """How often each text was read."""
    options = csv.ReadOptions(block_size=block_size)
    parsing = csv.ParseOptions(newlines_in_values=True)
    file = io.BytesIO(f"{header}\r\n{ROWS}".encode())
    return dict(Counter(csv.read_csv(file, read_options=options, parse_options=parsing)["text"].to_pylist()))


MIB = 2**20
first, moved, large = texts("text,number", MIB), texts("text,numbers", MIB), texts("text,number", 4 * MIB)
print(f"100000 equal texts, read: {first}")
print(f"the same with a header that is 1 byte longer: {moved}")
print(f"the first file with block_size 4 MiB: {large}")
whole = {"one\r\ntwo": 100_000}
sys.exit((first, moved, large) != ({"one\r\ntwo": 99_999, "one\rtwo": 1}, whole, whole))
PYTHON

"$folder/venv/bin/python" "$folder/read.py"
