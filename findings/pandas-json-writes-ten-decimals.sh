#!/usr/bin/env bash
# pandas and datasets write numbers to JSON with ten decimals: small ones lose digits, and 1e-12 becomes 0.
#
# Seen with: pandas 3.1.1, datasets 5.2.0, numpy 2.4.6, CPython 3.11.
#
# to_json rounds to ten places after the point, not to ten digits, and says nothing. Probabilities, learning rates and
# vectors of small numbers come back with a few digits or as zeros, and their logarithms as -inf. datasets writes by
# pandas, and to_json has the same rounding for lists of numbers there. to_csv and to_parquet keep every digit. In
# pandas, double_precision=15 keeps these two.
#
# Output seen:
#   pandas: [[0.0000123457],[0.0]]
#   pandas, to_csv: 1.23456789e-05 1e-12
#   pandas, double_precision=15: [[0.0000123456789],[0.000000000001]]
#   datasets: {"vector":[0.0000123457,0.0]}
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pandas==3.1.1 numpy==2.4.6 datasets==5.2.0 pyarrow==26.0.1

cat > write.py <<'PYTHON'
from pathlib import Path

import pandas as pd
from datasets import Dataset, disable_progress_bars

disable_progress_bars()
SMALL = [1.23456789e-05, 1e-12]
frame = pd.DataFrame({"p": SMALL})
print("pandas:", frame.to_json(orient="values"))
print("pandas, to_csv:", *frame.to_csv(index=False, header=False).split())
print("pandas, double_precision=15:", frame.to_json(orient="values", double_precision=15))
Dataset.from_dict({"vector": [SMALL]}).to_json("vectors.jsonl")
print("datasets:", Path("vectors.jsonl").read_text().strip())
PYTHON

HF_HOME="$folder/hub" venv/bin/python write.py 2>/dev/null | tee found
diff seen found
