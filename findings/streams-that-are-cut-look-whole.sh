#!/usr/bin/env bash
# An Arrow stream and an Avro file whose writer was killed are read as shorter tables, without an error.
#
# Seen with: pyarrow 26.0.1, fastavro 1.13.1, avro 1.12.2, CPython 3.11.
#
# Both are blocks of rows one after the other. Arrow's mark of the end is optional, and Avro has none nor a count, so a
# file that ends between two blocks, as after a full disk, a kill or an upload in parts, is valid: half of the rows are
# missing. datasets keeps its cache as Arrow streams, Kafka and Hadoop write Avro. Parquet and Arrow's file format,
# which have their list of blocks at the end, raise.
#
# Output seen:
#   Arrow stream: whole 1000 rows, after half of the blocks 500
#   Arrow file: whole 1000 rows, after half of the blocks ArrowInvalid
#   Parquet: whole 1000 rows, after half of the blocks ArrowInvalid
#   Avro, fastavro: whole 1000 rows, after half of the blocks 500
#   Avro, avro: whole 1000 rows, after half of the blocks 500
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pyarrow==26.0.1 fastavro==1.13.1 avro==1.12.2

cat > cut.py <<'PYTHON'
import io

import avro.datafile
import avro.io
import fastavro
import pyarrow as pa
from pyarrow import ipc
from pyarrow import parquet as pq

BLOCKS, ROWS = 10, 100
table = pa.table({"x": range(BLOCKS * ROWS)})
SCHEMA = {"type": "record", "name": "row", "fields": [{"name": "x", "type": "long"}]}


def blocks_of(write):
    """Where each block ends, and the whole content."""
    file, ends = io.BytesIO(), []
    for block in write(file):
        block()
        ends.append(file.tell())
    return file.getvalue(), ends


def arrow(new):
    def write(file):
        with new(file, table.schema) as writer:
            for batch in table.to_batches(ROWS):
                yield lambda batch=batch: writer.write_batch(batch)

    return write


def avro_file(file):
    writer = fastavro.write.Writer(file, fastavro.parse_schema(SCHEMA))
    for batch in table.to_batches(ROWS):

        def block(batch=batch):
            for row in batch.to_pylist():
                writer.write(row)
            writer.dump()

        yield block


def parquet(file):
    with pq.ParquetWriter(file, table.schema) as writer:
        for batch in table.to_batches(ROWS):
            yield lambda batch=batch: writer.write_batch(batch)


def rows(read, content):
    try:
        return read(io.BytesIO(content))
    except (pa.ArrowException, OSError) as error:
        return type(error).__name__


for name, write, read in (
    ("Arrow stream", arrow(ipc.new_stream), lambda file: ipc.open_stream(file).read_all().num_rows),
    ("Arrow file", arrow(ipc.new_file), lambda file: ipc.open_file(file).read_all().num_rows),
    ("Parquet", parquet, lambda file: pq.read_table(file).num_rows),
    ("Avro, fastavro", avro_file, lambda file: len(list(fastavro.reader(file)))),
    ("Avro, avro", avro_file, lambda file: len(list(avro.datafile.DataFileReader(file, avro.io.DatumReader())))),
):
    content, ends = blocks_of(write)
    cut = content[: ends[BLOCKS // 2 - 1]]
    print(f"{name}: whole {rows(read, content)} rows, after half of the blocks {rows(read, cut)}")
PYTHON

venv/bin/python cut.py | tee found
diff seen found
