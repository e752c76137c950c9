#!/usr/bin/env bash
# XGBoost predicts wrongly for rows in a QuantileDMatrix that was made without the training matrix, the more so for few.
#
# Seen with: xgboost-cpu 3.2.0, scikit-learn 1.9.1, numpy 2.4.6, CPython 3.11.
#
# QuantileDMatrix takes the place of DMatrix to save memory, with the same arguments, and keeps for each value only the
# number of its bin. The bins are those of the rows at hand unless ref= names the training matrix, and the trees take
# them as they are. A large test set like the training rows has nearly the same bins; a small one, or one of another
# month, has others, and the predictions for the same row depend on the rows beside it. Nothing is said, neither by
# predict nor by the metric that decides when training stops.
#
# Output seen:
#   R2 of 1000 rows, 1000 at a time: DMatrix 0.98, QuantileDMatrix 0.98, with ref 0.98
#   R2 of 1000 rows, 10 at a time: DMatrix 0.98, QuantileDMatrix 0.87, with ref 0.98
#   R2 of 1000 rows, 1 at a time: DMatrix 0.98, QuantileDMatrix -0.13, with ref 0.98
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  xgboost-cpu==3.2.0 scikit-learn==1.9.1 numpy==2.4.6

cat > bins.py <<'PYTHON'
import numpy as np
import xgboost
from sklearn.metrics import r2_score

random = np.random.default_rng(0)
rows = random.normal(size=(3000, 3))
values = rows[:, 0] + np.sin(5 * rows[:, 1])
matrix = xgboost.QuantileDMatrix(rows[:2000], values[:2000])
model = xgboost.train({}, matrix, 30)


def score(kind: type, size: int, **options) -> float:
    parts = [kind(rows[start : start + size], **options) for start in range(2000, 3000, size)]
    return r2_score(values[2000:], np.concatenate([model.predict(part) for part in parts]))


for size in (1000, 10, 1):
    print(
        f"R2 of 1000 rows, {size} at a time: DMatrix {score(xgboost.DMatrix, size):.2f},",
        f"QuantileDMatrix {score(xgboost.QuantileDMatrix, size):.2f},",
        f"with ref {score(xgboost.QuantileDMatrix, size, ref=matrix):.2f}",
    )
PYTHON

OMP_NUM_THREADS=1 venv/bin/python bins.py | tee found
diff seen found
