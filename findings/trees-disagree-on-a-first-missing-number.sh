#!/usr/bin/env bash
# A missing number is 0 for LightGBM and the lowest of all for CatBoost, where training had none; others differ.
#
# Seen with: lightgbm 4.7.0, catboost 1.2.10, xgboost-cpu 3.2.0, scikit-learn 1.9.1, numpy 2.4.6, CPython 3.11.
#
# A column that was complete in training has gaps when the model is used, as when a sensor or a form field is off. Five
# libraries take the row without a word. Here temperatures were from 10 to 40, and cold ones are rare and mean an alarm.
# A gap is an alarm to LightGBM and CatBoost, as 0 and anything below 10 are, and not for the others. With 0 in the
# range, LightGBM takes a gap for a usual value. use_missing and nan_mode do not change this afterwards.
#
# Output seen:
#   LGBMClassifier: alarm at 0: 0.9, at 11: 0.9, at 39: 0.0, missing: 0.9
#   CatBoostClassifier: alarm at 0: 1.0, at 11: 1.0, at 39: 0.0, missing: 1.0
#   XGBClassifier: alarm at 0: 1.0, at 11: 1.0, at 39: 0.0, missing: 0.0
#   HistGradientBoostingClassifier: alarm at 0: 0.9, at 11: 0.9, at 39: 0.0, missing: 0.0
#   RandomForestClassifier: alarm at 0: 1.0, at 11: 1.0, at 39: 0.0, missing: 0.0
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  lightgbm==4.7.0 catboost==1.2.10 xgboost-cpu==3.2.0 scikit-learn==1.9.1 numpy==2.4.6

cat > missing.py <<'PYTHON'
import numpy as np
from catboost import CatBoostClassifier
from lightgbm import LGBMClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from xgboost import XGBClassifier

temperatures = np.random.default_rng(0).uniform(10, 40, (2000, 1))
alarms = (temperatures[:, 0] < 13).astype(int)
asked = {"at 0": 0, "at 11": 11, "at 39": 39, "missing": np.nan}
for model in (
    LGBMClassifier(n_estimators=20, verbose=-1),
    CatBoostClassifier(n_estimators=20, verbose=0, allow_writing_files=False, thread_count=1),
    XGBClassifier(n_estimators=20),
    HistGradientBoostingClassifier(max_iter=20),
    RandomForestClassifier(20, random_state=0),
):
    model.fit(temperatures, alarms)
    found = model.predict_proba(np.array([[each] for each in asked.values()]))[:, 1]
    print(f"{type(model).__name__}: alarm", ", ".join(f"{what}: {p:.1f}" for what, p in zip(asked, found, strict=True)))
PYTHON

OMP_NUM_THREADS=1 venv/bin/python missing.py | tee found
diff seen found
