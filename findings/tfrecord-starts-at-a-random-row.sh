#!/usr/bin/env bash
# tfrecord reads a file that has an index from a random row on, another one each time.
#
# Seen with: tfrecord 1.14.6, protobuf 7.36.2, numpy 2.4.6, CPython 3.11.
#
# The index tells where each record begins, and is there to split a file over workers. Without a shard, tfrecord_loader
# uses it to draw a start by NumPy's global random state, reads to the end, and then from the beginning. All rows come,
# but labels, predictions or rows of a second file that are joined by their number belong to others. Without an index,
# and with shard=(0, 1), rows are in the order of the file.
#
# Output seen:
#   with an index, seed 0: [5, 6, 7, 8, 9, 0, 1, 2, 3, 4]
#   with an index, seed 1: [5, 6, 7, 8, 9, 0, 1, 2, 3, 4]
#   with an index, seed 2: [8, 9, 0, 1, 2, 3, 4, 5, 6, 7]
#   with an index and shard=(0, 1): [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
#   without an index: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  tfrecord==1.14.6 protobuf==7.36.2 numpy==2.4.6 crc32c==2.9.post0

cat > order.py <<'PYTHON'
import numpy as np
import tfrecord
from tfrecord.tools.tfrecord2idx import create_index

writer = tfrecord.TFRecordWriter("rows.tfrecord")
for number in range(10):
    writer.write({"row": (number, "int")})
writer.close()
create_index("rows.tfrecord", "rows.index")


def order(index, **options):
    return [int(row["row"][0]) for row in tfrecord.tfrecord_loader("rows.tfrecord", index, {"row": "int"}, **options)]


for seed in (0, 1, 2):
    np.random.seed(seed)
    print(f"with an index, seed {seed}:", order("rows.index"))
print("with an index and shard=(0, 1):", order("rows.index", shard=(0, 1)))
print("without an index:", order(None))
PYTHON

venv/bin/python order.py | tee found
diff seen found
