#!/usr/bin/env bash
# XGBoost learns nothing from rows whose weights sum to 1, as weights by survey, class or importance often do.
#
# Seen with: xgboost-cpu 3.2.0, lightgbm 4.7.0, catboost 1.2.10, scikit-learn 1.9.1, numpy 2.4.6, CPython 3.11.
#
# Weights say how much rows count beside each other, and their scale plays no part in other libraries. In XGBoost
# min_child_weight, 1 if not set, is compared with the weights in a leaf (times p * (1 - p)), and lambda is added to
# them. With small weights no split is allowed: every row gets one prediction, with an AUC of 0.5, and no message. With
# a mean below 1 trees are smaller than they seem, with one of 1000 both limits are off.
#
# Output seen:
#   XGBClassifier: AUC 1.00 with weights of 1, 0.50 with a sum of 1
#   LGBMClassifier: AUC 1.00 with weights of 1, 1.00 with a sum of 1
#   CatBoostClassifier: AUC 1.00 with weights of 1, 1.00 with a sum of 1
#   HistGradientBoostingClassifier: AUC 1.00 with weights of 1, 1.00 with a sum of 1
#   RandomForestClassifier: AUC 1.00 with weights of 1, 1.00 with a sum of 1
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  xgboost-cpu==3.2.0 lightgbm==4.7.0 catboost==1.2.10 scikit-learn==1.9.1 numpy==2.4.6

cat > weights.py <<'PYTHON'
import numpy as np
from catboost import CatBoostClassifier
from lightgbm import LGBMClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import roc_auc_score
from xgboost import XGBClassifier

rows = np.random.default_rng(0).normal(size=(2000, 3))
labels = (rows[:, 0] > 0).astype(int)
for model in (
    XGBClassifier(n_estimators=20),
    LGBMClassifier(n_estimators=20, verbose=-1),
    CatBoostClassifier(n_estimators=20, verbose=0, allow_writing_files=False, thread_count=1),
    HistGradientBoostingClassifier(max_iter=20),
    RandomForestClassifier(20, random_state=0),
):
    scores = []
    for weight in (1, 1 / 2000):
        model.fit(rows, labels, sample_weight=np.full(2000, weight))
        scores.append(roc_auc_score(labels, model.predict_proba(rows)[:, 1]))
    print(f"{type(model).__name__}: AUC {scores[0]:.2f} with weights of 1, {scores[1]:.2f} with a sum of 1")
PYTHON

OMP_NUM_THREADS=1 venv/bin/python weights.py | tee found
diff seen found
