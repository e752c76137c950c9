#!/usr/bin/env bash
# A stream that is shuffled and split by take and skip trains on its validation rows from the second epoch on.
#
# Seen with: datasets 5.2.0, CPython 3.11.
#
# stream.shuffle(seed) followed by take(100) and skip(100) gives two parts that share no row. set_epoch, which
# transformers' Trainer calls before each epoch, changes the seed below skip as well: the training part now skips
# another 100 rows, and contains rows of the validation part. The number of rows stays the same. Take and skip first,
# and shuffle the training part alone.
#
# Output seen:
#   shuffle, then split, epoch 0: 900 rows, 0 of them for validation
#   shuffle, then split, epoch 1: 900 rows, 47 of them for validation
#   shuffle, then split, epoch 2: 900 rows, 47 of them for validation
#   split, then shuffle, epoch 0: 900 rows, 0 of them for validation
#   split, then shuffle, epoch 1: 900 rows, 0 of them for validation
#   split, then shuffle, epoch 2: 900 rows, 0 of them for validation
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check datasets==5.2.0

cat > split.py <<'PYTHON'
from datasets import IterableDataset


def numbers():
    return ({"row": number} for number in range(1000))


def rows(stream):
    return {row["row"] for row in stream}


def report(what, validation, training):
    held = rows(validation)
    for epoch in (0, 1, 2):
        training.set_epoch(epoch)
        found = rows(training)
        print(f"{what}, epoch {epoch}: {len(found)} rows, {len(found & held)} of them for validation")


stream = IterableDataset.from_generator(numbers)
shuffled = stream.shuffle(seed=0, buffer_size=200)
report("shuffle, then split", shuffled.take(100), shuffled.skip(100))
report("split, then shuffle", stream.take(100), stream.skip(100).shuffle(seed=0, buffer_size=200))
PYTHON

HF_HOME="$folder/hub" HF_HUB_OFFLINE="1" venv/bin/python split.py 2>/dev/null | tee found
diff seen found
