#!/usr/bin/env bash
# pyarrow does not ask invalid_row_handler about a CSV row that is not UTF-8, even where all columns are read as bytes.
#
# Seen with: pyarrow 26.0.1, CPython 3.11, Linux x86-64.
#
# ParseOptions(invalid_row_handler=…) decides about rows with another number of values than the header: "skip" or
# "error". pyarrow decodes the row's text as UTF-8 before it calls the handler. Where that fails, the handler is not
# called: Python prints "Exception ignored in" with a traceback to standard error, and the row is an error. A file in
# Latin-1 is read without complaint as long as columns are pa.binary() and all rows have the same width.
#
# Output seen:
#   all rows of one width: 3 rows
#   a short ASCII row: 2 rows, handler called 1 times
#   a short row with byte 0xe9: ArrowInvalid, handler called 0 times, UnicodeDecodeError printed: True
#
# Fails if the handler is called for the last one.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pyarrow==26.0.1

cat > "$folder/handle.py" <<'PYTHON'
import io
import sys

import pyarrow
from pyarrow import csv

LATIN = b"a,b\n1,2\ncaf\xe9,4\n5,6\n"
printed = []
sys.unraisablehook = lambda found: printed.append(type(found.exc_value))


def read(table: bytes) -> tuple[int | str, int]:
    """Rows, or what was raised, and how often the handler was called."""
    called = []

    def skip(row: csv.InvalidRow) -> str:
        called.append(row.number)
        return "skip"

    parse = csv.ParseOptions(invalid_row_handler=skip)
    convert = csv.ConvertOptions(column_types={"a": pyarrow.binary(), "b": pyarrow.binary()})
    try:
        return len(csv.read_csv(io.BytesIO(table), parse_options=parse, convert_options=convert)), len(called)
    except pyarrow.ArrowInvalid as error:
        return type(error).__name__, len(called)


print(f"all rows of one width: {read(LATIN)[0]} rows")
rows, called = read(b"a,b\n1,2\nshort\n5,6\n")
print(f"a short ASCII row: {rows} rows, handler called {called} times")
raised, unheard = read(b"a,b\n1,2\ncaf\xe9\n5,6\n")
decoding = UnicodeDecodeError in printed
print(f"a short row with byte 0xe9: {raised}, handler called {unheard} times, UnicodeDecodeError printed: {decoding}")
sys.exit((rows, called, raised, unheard, decoding) != (2, 1, "ArrowInvalid", 0, True))
PYTHON

"$folder/venv/bin/python" "$folder/handle.py"
