#!/usr/bin/env bash
# Random forests, XGBoost and CatBoost cannot tell times apart that lie less than a minute or two apart.
#
# Seen with: scikit-learn 1.9.1, xgboost 3.2.0, catboost 1.2.10, lightgbm 4.7.0, numpy 2.4.6, CPython 3.11.
#
# A column of float64 is cast to float32 before trees see it, in scikit-learn's trees and forests, XGBoost and CatBoost.
# Seconds since 1970 are 1.7e9, where neighbors in float32 are 128 apart; ids and projected coordinates are alike. No
# message is given. LightGBM and HistGradientBoosting of the same scikit-learn keep 64 bits. Here the label changes
# every 16 seconds.
#
# Output seen:
#   RandomForestClassifier: accuracy from second 0: 1.00, from second 1700000000: 0.51
#   XGBClassifier: accuracy from second 0: 1.00, from second 1700000000: 0.51
#   CatBoostClassifier: accuracy from second 0: 1.00, from second 1700000000: 0.51
#   HistGradientBoostingClassifier: accuracy from second 0: 1.00, from second 1700000000: 1.00
#   LGBMClassifier: accuracy from second 0: 1.00, from second 1700000000: 1.00
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  scikit-learn==1.9.1 lightgbm==4.7.0 xgboost==3.2.0 catboost==1.2.10 numpy==2.4.6 scipy==1.17.1

cat > fit.py <<'PYTHON'
import numpy as np
from catboost import CatBoostClassifier
from lightgbm import LGBMClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from xgboost import XGBClassifier

seconds = np.arange(128)
label = seconds // 16 % 2
models = [
    RandomForestClassifier(random_state=0),
    XGBClassifier(),
    CatBoostClassifier(iterations=100, learning_rate=0.5, verbose=False, allow_writing_files=False),
    HistGradientBoostingClassifier(min_samples_leaf=1),
    LGBMClassifier(min_child_samples=1, min_data_in_bin=1, verbose=-1),
]
for model in models:
    scores = []
    for start in (0, 1_700_000_000):
        column = (start + seconds).astype(np.float64)[:, None]
        scores.append(f"{model.fit(column, label).score(column, label):.2f}")
    print(f"{type(model).__name__}: accuracy from second 0: {scores[0]}, from second 1700000000: {scores[1]}")
PYTHON

venv/bin/python fit.py 2>/dev/null | tee found
diff seen found
