#!/usr/bin/env bash
# Apache's avro writes the digits of a decimal without regard to its scale: 1.5 comes back as 0.15.
#
# Seen with: avro 1.12.2, fastavro 1.13.1, CPython 3.11.
#
# Avro stores a decimal as a whole number, and its schema says how many of its digits are places. avro takes the digits
# of the value as they are: with a scale of 2, only numbers that have exactly two places are right, and 1.5 is divided
# by 10, 2 by 100. Neither writing nor reading raises, and readers of any language see the wrong number. Python's
# Decimal has as many places as it was written with, so one column has both kinds. fastavro scales.
#
# Output seen:
#   given: 1.50 1.5 2 -0.1
#   written by avro, read by fastavro: 1.50 0.15 0.02 -0.01
#   written by fastavro, read by fastavro: 1.50 1.50 2.00 -0.10
#   written by avro, read by avro: 1.50 0.15 0.02 -0.01
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check avro==1.12.2 fastavro==1.13.1

cat > decimals.py <<'PYTHON'
import io
import json
from decimal import Decimal

import avro.schema
import fastavro
from avro.datafile import DataFileReader, DataFileWriter
from avro.io import DatumReader, DatumWriter

PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}
SCHEMA = {"type": "record", "name": "row", "fields": [{"name": "price", "type": PRICE}]}


def by_avro(rows):
    file = io.BytesIO()
    writer = DataFileWriter(file, DatumWriter(), avro.schema.parse(json.dumps(SCHEMA)))
    for row in rows:
        writer.append(row)
    writer.flush()
    return io.BytesIO(file.getvalue())


def by_fastavro(rows):
    file = io.BytesIO()
    fastavro.writer(file, fastavro.parse_schema(SCHEMA), rows)
    return io.BytesIO(file.getvalue())


rows = [{"price": Decimal(text)} for text in ("1.50", "1.5", "2", "-0.1")]
print("given:", *(row["price"] for row in rows))
for name, write in (("avro", by_avro), ("fastavro", by_fastavro)):
    print(f"written by {name}, read by fastavro:", *(row["price"] for row in fastavro.reader(write(rows))))
print("written by avro, read by avro:", *(row["price"] for row in DataFileReader(by_avro(rows), DatumReader())))
PYTHON

venv/bin/python decimals.py | tee found
diff seen found
