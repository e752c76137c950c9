#!/usr/bin/env bash
# datasets casts texts to classes by their names, but classes to the same names in another order by their numbers.
#
# Seen with: datasets 5.2.0, CPython 3.11.
#
# Two sets whose ClassLabel lists the same names in another order cannot be joined: an error asks for equal features.
# cast_column makes them equal, and keeps the numbers: every "neg" is a "pos" afterwards, without a word. The same call
# on a column of texts looks each name up. align_labels_with_mapping is what renumbers.
#
# Output seen:
#   before: ['neg', 'neg', 'pos']
#   cast_column of classes: ['pos', 'pos', 'neg']
#   cast_column of texts: ['neg', 'neg', 'pos']
#   align_labels_with_mapping: ['neg', 'neg', 'pos']
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check datasets==5.2.0

cat > cast.py <<'PYTHON'
from datasets import ClassLabel, Dataset, disable_progress_bars

disable_progress_bars()


def names(rows):
    return rows.features["label"].int2str(rows["label"][:])


other = ClassLabel(names=["pos", "neg"])
texts = Dataset.from_dict({"label": ["neg", "neg", "pos"]})
classes = texts.cast_column("label", ClassLabel(names=["neg", "pos"]))
print("before:", names(classes))
print("cast_column of classes:", names(classes.cast_column("label", other)))
print("cast_column of texts:", names(texts.cast_column("label", other)))
print("align_labels_with_mapping:", names(classes.align_labels_with_mapping({"pos": 0, "neg": 1}, "label")))
PYTHON

HF_HOME="$folder/hub" venv/bin/python cast.py 2>/dev/null | tee found
diff seen found
