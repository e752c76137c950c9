#!/usr/bin/env bash
# datasets takes the label "0" for class number 0, which is named "1", and whole numbers for numbers, not for names.
#
# Seen with: datasets 5.2.0, CPython 3.11.
#
# Classes are named "1", "2" and "3", as stars or grades are. A text that is no name, but can be read as a number of a
# class, is that class, so a stray "0" becomes "1", and "-1" a missing label; "4" raises. The same labels as integers,
# which is what most readers make of such a column, are not looked up at all: each moves to the next class, and 3 is
# stored, although there is no class of this number. Cast to texts first, integers are looked up.
#
# Output seen:
#   texts 1, 2, 3, 0, -1: ['1', '2', '3', '1', None]
#   integers 1, 2: ['2', '3']
#   integer 3: class number 3
#   integers 1, 2, 3, cast to texts first: ['1', '2', '3']
#   text 4: ValueError
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  datasets==5.2.0

cat > classes.py <<'PYTHON'
from datasets import ClassLabel, Dataset, Value, disable_progress_bars

disable_progress_bars()
stars = ClassLabel(names=["1", "2", "3"])


def numbers(values: list, first: Value | None = None) -> list[int]:
    rows = Dataset.from_dict({"stars": values})
    return (rows.cast_column("stars", first) if first else rows).cast_column("stars", stars)["stars"][:]


def names(found: list[int]) -> list[str | None]:
    return [None if number < 0 else stars.int2str(number) for number in found]


print("texts 1, 2, 3, 0, -1:", names(numbers(["1", "2", "3", "0", "-1"])))
print("integers 1, 2:", names(numbers([1, 2])))
print("integer 3: class number", *numbers([3]))
print("integers 1, 2, 3, cast to texts first:", names(numbers([1, 2, 3], Value("string"))))
try:
    print("text 4:", numbers(["4"]))
except ValueError as error:
    print("text 4:", type(error).__name__)
PYTHON

HF_HOME="$folder/hub" venv/bin/python classes.py | tee found
diff seen found
