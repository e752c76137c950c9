#!/usr/bin/env bash
# pyarrow's CSV reader merges rows at a quote that is not closed, without an error, as Python's csv does by default.
#
# Seen with: pyarrow 26.0.1, CPython 3.11, Linux x86-64.
#
# A value that begins with a quote goes on to the next quote, over line breaks where newlines_in_values is set, as texts
# need. What follows that quote up to the delimiter is appended, so the opening quote of a later value closes the first
# one: three rows become one with the number of values of the header. invalid_row_handler is not called, and there is no
# option for strict parsing as csv.reader(strict=True) has it. Quotes that a backslash escapes, as Spark writes them by
# default, end the value too early: the backslash becomes a part of the text, and a quote is lost.
#
# Output seen:
#   not closed: 2 rows, handler called 0 times: ['great,pos\nbad,neg\nreally fine"', 'ok']
#   not closed, csv.reader: 2 rows
#   not closed, csv.reader(strict=True): ',' expected after '"'
#   escaped by a backslash: 2 rows, handler called 0 times: ['he said \\so\\" twice"', 'ok']
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pyarrow==26.0.1

cat > merge.py <<'PYTHON'
import csv
import io

from pyarrow import csv as arrow_csv

NOT_CLOSED = 'text,label\n"great,pos\nbad,neg\n"really fine",pos\nok,neg\n'
ESCAPED = 'text,label\n"he said \\"so\\" twice",pos\nok,neg\n'


def read(table: str) -> str:
    called = []

    def skip(row: arrow_csv.InvalidRow) -> str:
        called.append(row.number)
        return "skip"

    parse = arrow_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=skip)
    rows = arrow_csv.read_csv(io.BytesIO(table.encode()), parse_options=parse)
    return f"{len(rows)} rows, handler called {len(called)} times: {rows['text'].to_pylist()}"


print("not closed:", read(NOT_CLOSED))
print("not closed, csv.reader:", len(list(csv.reader(io.StringIO(NOT_CLOSED, newline="")))) - 1, "rows")
try:
    list(csv.reader(io.StringIO(NOT_CLOSED, newline=""), strict=True))
except csv.Error as error:
    print("not closed, csv.reader(strict=True):", error)
print("escaped by a backslash:", read(ESCAPED))
PYTHON

venv/bin/python merge.py | tee found
diff seen found
