#!/usr/bin/env bash
# A booster of xgboost.train predicts with the trees after the best one; XGBClassifier and LightGBM do not.
#
# Seen with: xgboost 3.2.0, lightgbm 4.7.0, numpy 2.4.6, CPython 3.11.
#
# Early stopping ends training some rounds after the best one. predict of XGBClassifier, and of LightGBM's booster, then
# takes the trees up to the best. Booster.predict takes all of them: scores are those of the last round, which is known
# to be worse. iteration_range=(0, best_iteration + 1) is needed.
#
# Output seen:
#   xgboost.train: 43 trees, the best 3
#   xgboost.train, predict: log loss 0.74
#   xgboost.train, with iteration_range: log loss 0.59
#   XGBClassifier: log loss 0.59
#   lightgbm.train: predict equals that of the best: True
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  xgboost==3.2.0 lightgbm==4.7.0 scikit-learn==1.9.1 numpy==2.4.6 scipy==1.17.1

cat > stop.py <<'PYTHON'
import lightgbm
import numpy as np
import xgboost
from sklearn.metrics import log_loss

random = np.random.default_rng(0)
rows = random.normal(size=(400, 20))
label = (rows[:, 0] + random.normal(size=400) > 0).astype(int)
train, test = slice(0, 100), slice(100, 400)
patience = 40

known, held = xgboost.DMatrix(rows[train], label[train]), xgboost.DMatrix(rows[test], label[test])
settings = {"objective": "binary:logistic", "nthread": 1}
stop = {"early_stopping_rounds": patience, "verbose_eval": False}
booster = xgboost.train(settings, known, 500, evals=[(held, "held")], **stop)
best = booster.best_iteration + 1
print(f"xgboost.train: {booster.num_boosted_rounds()} trees, the best {best}")
for what, given in (("predict", {}), ("with iteration_range", {"iteration_range": (0, best)})):
    print(f"xgboost.train, {what}: log loss {log_loss(label[test], booster.predict(held, **given)):.2f}")
model = xgboost.XGBClassifier(early_stopping_rounds=patience, n_estimators=500, n_jobs=1)
model.fit(rows[train], label[train], eval_set=[(rows[test], label[test])], verbose=False)
print(f"XGBClassifier: log loss {log_loss(label[test], model.predict_proba(rows[test])):.2f}")
data = lightgbm.Dataset(rows[train], label[train])
held = data.create_valid(rows[test], label[test])
stopping = [lightgbm.early_stopping(patience, verbose=False)]
quiet = {"objective": "binary", "verbosity": -1, "num_threads": 1}
booster = lightgbm.train(quiet, data, 500, [held], callbacks=stopping)
best = booster.predict(rows[test], num_iteration=booster.best_iteration)
print("lightgbm.train: predict equals that of the best:", np.array_equal(booster.predict(rows[test]), best))
PYTHON

venv/bin/python stop.py 2>/dev/null | tee found
diff seen found
