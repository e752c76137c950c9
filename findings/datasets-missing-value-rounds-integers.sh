#!/usr/bin/env bash
# A missing value makes datasets round the integers that stand in one batch with it.
#
# Seen with: datasets 5.2.0, numpy 2.4.6, CPython 3.11.
#
# with_format("numpy") and with_format("torch") give int64 for a batch without missing values and float32 for a batch
# with one, where the missing value is NaN. float32 holds integers only up to 2**24: ids above are rounded, and the
# type, and so the very value of an id, depends on which rows share its batch. pandas takes float64.
#
# Output seen:
#   rows: [16777217, 16777219, None, 16777221]
#   batch 1: int64 [16777217, 16777219]
#   batch 2: float32 [nan, 16777220.0]
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check datasets==5.2.0 numpy==2.4.6

cat > batches.py <<'PYTHON'
from datasets import Dataset

rows = Dataset.from_dict({"id": [2**24 + 1, 2**24 + 3, None, 2**24 + 5]})
print("rows:", rows["id"][:])
for number, batch in enumerate(rows.with_format("numpy").iter(batch_size=2), 1):
    print(f"batch {number}: {batch['id'].dtype} {batch['id'].tolist()}")
PYTHON

HF_HOME="$folder/hub" venv/bin/python batches.py | tee found
diff seen found
