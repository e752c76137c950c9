#!/usr/bin/env bash
# datasets makes True of the text "false", and 2 of 2.7, if the types are given along with the rows.
#
# Seen with: datasets 5.2.0, CPython 3.11.
#
# from_dict and from_list with features= convert each value by Python's bool() and int(), for which every text but an
# empty one is true, and which cut. No error is raised. cast_column to the same types converts as Arrow does: it reads
# "false", and refuses to cut. So the same features give other rows, and labels, depending on when they are set.
#
# Output seen:
#   bool, texts "true", "false", "0": from_dict [True, True, True], cast_column [True, False, False]
#   int64, 2.7: from_dict [2], cast_column ArrowInvalid
#   int64, lists of 2.7: from_dict [[2]], cast_column ArrowInvalid
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

cat > features.py <<'PYTHON'
import pyarrow
from datasets import Dataset, Features, List, Value, disable_progress_bars

disable_progress_bars()


def both(what: str, kind: Value | List, values: list) -> None:
    given = Dataset.from_dict({"value": values}, features=Features({"value": kind}))["value"][:]
    try:
        cast = Dataset.from_dict({"value": values}).cast_column("value", kind)["value"][:]
    except pyarrow.ArrowInvalid as error:
        cast = type(error).__name__
    print(f"{what}: from_dict {given}, cast_column {cast}")


both('bool, texts "true", "false", "0"', Value("bool"), ["true", "false", "0"])
both("int64, 2.7", Value("int64"), [2.7])
both("int64, lists of 2.7", List(Value("int64")), [[2.7]])
PYTHON

HF_HOME="$folder/hub" venv/bin/python features.py | tee found
diff seen found
