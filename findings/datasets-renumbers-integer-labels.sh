#!/usr/bin/env bash
# datasets' class_encode_column renumbers labels that are integers already, as soon as there are more than ten.
#
# Seen with: datasets 5.2.0, CPython 3.11.
#
# The names of the ClassLabel are the labels as texts, sorted as texts: 10 and 11 come before 2. Of classes 0 to 9, each
# keeps its number, so a small set shows nothing. With the eleventh class, label 2 becomes 3: a list of names, or a
# model, that goes by the old numbers is wrong, and no error is raised. train_test_split(stratify_by_column=…) takes
# only a ClassLabel, so integers are often encoded for its sake.
#
# Output seen:
#   10 classes: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
#   12 classes: [0, 1, 4, 5, 6, 7, 8, 9, 10, 11, 2, 3]
#   names: ['0', '1', '10', '11', '2', '3', '4', '5', '6', '7', '8', '9']
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
from datasets import Dataset, disable_progress_bars

disable_progress_bars()
for classes in (10, 12):
    rows = Dataset.from_dict({"label": list(range(classes))}).class_encode_column("label")
    print(f"{classes} classes:", rows["label"][:])
print("names:", rows.features["label"].names)
PYTHON

HF_HOME="$folder/hub" venv/bin/python encode.py | tee found
diff seen found
