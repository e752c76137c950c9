#!/usr/bin/env bash
# mlcroissant lets pandas guess the types of a CSV file, and then casts: 007 loses its zeros, "no" is True, 1.7 is 1.
#
# Seen with: mlcroissant 1.1.1, pandas 3.1.1, CPython 3.11.
#
# A Croissant file says the type of each field, but the CSV file is read without it. A field of sc:Text whose values are
# digits is a number by then; sc:Boolean is Python's bool(), for which every text is true; sc:Integer cuts, and is
# rounded to 53 bits if one value of the column is missing. A text "NA" or "None" is missing. No warning is given, and
# the types of the records are those that were declared.
#
# Output seen:
#   sc:Text ['007', '012']: [b'7', b'12']
#   sc:Text ['NA', 'None']: [None, None]
#   sc:Boolean ['yes', 'no']: [True, True]
#   sc:Integer ['1.7', '2']: [1, 2]
#   sc:Integer ['9007199254740993', '']: [9007199254740992, None]
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check mlcroissant==1.1.1 pandas==3.1.1

cat > fields.py <<'PYTHON'
import hashlib
import json
import logging
from pathlib import Path

import mlcroissant

logging.disable()


def read(kind, *values):
    """The values of a field of type `kind` in a CSV file of one more column."""
    rows = "".join(f"{number},{value}\n" for number, value in enumerate(values))
    Path("rows.csv").write_text("row,field\n" + rows)
    file = {
        "@type": "cr:FileObject",
        "@id": "rows.csv",
        "name": "rows.csv",
        "contentUrl": "rows.csv",
        "encodingFormat": "text/csv",
        "sha256": hashlib.sha256(Path("rows.csv").read_bytes()).hexdigest(),
    }
    source = {"fileObject": {"@id": "rows.csv"}, "extract": {"column": "field"}}
    field = {"@type": "cr:Field", "@id": "rows/field", "name": "field", "dataType": kind, "source": source}
    context = {key: f"cr:{key}" for key in ("column", "extract", "field", "fileObject", "recordSet", "source")} | {
        "@language": "en",
        "@vocab": "https://schema.org/",
        "sc": "https://schema.org/",
        "cr": "http://mlcommons.org/croissant/",
        "dct": "http://purl.org/dc/terms/",
        "conformsTo": "dct:conformsTo",
        "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    }
    description = {
        "@context": context,
        "@type": "sc:Dataset",
        "name": "rows",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "distribution": [file],
        "recordSet": [{"@type": "cr:RecordSet", "@id": "rows", "name": "rows", "field": [field]}],
    }
    Path("croissant.json").write_text(json.dumps(description))
    return [record["rows/field"] for record in mlcroissant.Dataset("croissant.json").records("rows")]


for kind, *values in (
    ("sc:Text", "007", "012"),
    ("sc:Text", "NA", "None"),
    ("sc:Boolean", "yes", "no"),
    ("sc:Integer", "1.7", "2"),
    ("sc:Integer", str(2**53 + 1), ""),
):
    print(f"{kind} {values}:", read(kind, *values))
PYTHON

venv/bin/python fields.py | tee found
diff seen found
