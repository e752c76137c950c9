#!/usr/bin/env bash
# In Great Expectations a column in which every value is missing passes: its ages are all from 0 to 120.
#
# Seen with: great_expectations 1.24.1, pandas 3.1.1, numpy 2.4.6, CPython 3.11.
#
# Missing values are left out before an expectation is checked, and what nothing speaks against is met. mostly=0.9,
# which reads as "at least 90% of the rows", is a part of the values that are there: one good value among 99 missing
# ones is 100%. A column that a broken export left empty so passes expectations of range, set, pattern, uniqueness and
# type. ExpectColumnValuesToNotBeNull must be asked for beside each.
#
# Output seen:
#   100 missing: ExpectColumnValuesToBeBetween: True
#   100 missing: ExpectColumnValuesToBeBetween, mostly 0.9: True
#   100 missing: ExpectColumnValuesToBeInSet: True
#   99 missing, 30: ExpectColumnValuesToBeBetween: True
#   99 missing, 30: ExpectColumnValuesToBeBetween, mostly 0.9: True
#   99 missing, 30: ExpectColumnValuesToBeInSet: True
#   99 of 30, 200: ExpectColumnValuesToBeBetween: False
#   99 of 30, 200: ExpectColumnValuesToBeBetween, mostly 0.9: True
#   99 of 30, 200: ExpectColumnValuesToBeInSet: False
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check great_expectations==1.24.1 pandas==3.1.1 numpy==2.4.6

cat > ages.py <<'PYTHON'
import great_expectations
import pandas as pd
from great_expectations import expectations

context = great_expectations.get_context(mode="ephemeral")
asset = context.data_sources.add_pandas("tables").add_dataframe_asset("people")
definition = asset.add_batch_definition_whole_dataframe("all")
COLUMNS = {
    "100 missing": [None] * 100,
    "99 missing, 30": [None] * 99 + [30.0],
    "99 of 30, 200": [30.0] * 99 + [200.0],
}
for what, ages in COLUMNS.items():
    batch = definition.get_batch({"dataframe": pd.DataFrame({"age": pd.Series(ages, dtype="float64")})})
    for expectation in (
        expectations.ExpectColumnValuesToBeBetween(column="age", min_value=0, max_value=120),
        expectations.ExpectColumnValuesToBeBetween(column="age", min_value=0, max_value=120, mostly=0.9),
        expectations.ExpectColumnValuesToBeInSet(column="age", value_set=[30]),
    ):
        mostly = f", mostly {expectation.mostly}" if expectation.mostly != 1 else ""
        print(f"{what}: {type(expectation).__name__}{mostly}: {batch.validate(expectation).success}")
PYTHON

venv/bin/python ages.py 2>/dev/null | tee found
diff seen found
