#!/usr/bin/env bash
# class_encode_column of a DatasetDict numbers the classes of each split by themselves.
#
# Seen with: datasets 5.2.0, CPython 3.11.
#
# It is one call for training and test rows, and gives two numberings where a class occurs in one of them only: class c
# is 2 in training and 1 in the test, and a right prediction counts as wrong. No error is raised until the splits are
# joined. cast_column with a ClassLabel that lists all names numbers both alike.
#
# Output seen:
#   class_encode_column, train: {'a': 0, 'b': 1, 'c': 2}
#   class_encode_column, test: {'c': 1, 'a': 0}
#   cast_column, train: {'a': 0, 'b': 1, 'c': 2}
#   cast_column, test: {'c': 2, 'a': 0}
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check datasets==5.2.0

cat > encode.py <<'PYTHON'
from datasets import ClassLabel, Dataset, DatasetDict, disable_progress_bars

disable_progress_bars()
splits = {"train": ["a", "b", "c"], "test": ["c", "a"]}
rows = DatasetDict({split: Dataset.from_dict({"label": labels}) for split, labels in splits.items()})
for what, encoded in (
    ("class_encode_column", rows.class_encode_column("label")),
    ("cast_column", rows.cast_column("label", ClassLabel(names=["a", "b", "c"]))),
):
    for split, labels in splits.items():
        print(f"{what}, {split}:", dict(zip(labels, encoded[split]["label"], strict=True)))
PYTHON

HF_HOME="$folder/hub" HF_HUB_OFFLINE="1" venv/bin/python encode.py 2>/dev/null | tee found
diff seen found
