#!/usr/bin/env bash
# XGBoost and CatBoost stop early by the last of the sets in eval_set; with the training rows last, they never stop.
#
# Seen with: xgboost-cpu 3.2.0, catboost 1.2.10, lightgbm 4.7.0, scikit-learn 1.9.1, numpy 2.4.6, CPython 3.11.
#
# eval_set takes a list, so that curves of training and validation can be drawn, and says nothing of an order. The last
# one decides: with validation first, the loss of the training rows is watched, which falls to the end. The model has
# all trees, its best iteration is the last one, and it is overfitted as if there were no early stopping. LightGBM stops
# as soon as any set but the training rows does.
#
# Output seen:
#   XGBClassifier: training, validation: 5 trees, AUC 0.65; validation, training: 100 trees, AUC 0.62
#   CatBoostClassifier: training, validation: 43 trees, AUC 0.68; validation, training: 100 trees, AUC 0.67
#   LGBMClassifier: training, validation: 10 trees, AUC 0.65; validation, training: 10 trees, AUC 0.65
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  xgboost-cpu==3.2.0 catboost==1.2.10 lightgbm==4.7.0 scikit-learn==1.9.1 numpy==2.4.6

cat > stopping.py <<'PYTHON'
import warnings

import numpy as np
from catboost import CatBoostClassifier
from lightgbm import LGBMClassifier
from sklearn.metrics import roc_auc_score
from xgboost import XGBClassifier

warnings.simplefilter("ignore", FutureWarning)
random = np.random.default_rng(0)
rows = random.normal(size=(6000, 5))
labels = (rows[:, 0] + 2 * random.normal(size=6000) > 0).astype(int)
training, validation, test = ((rows[part], labels[part]) for part in np.split(np.arange(6000), [1000, 2000]))

for make, options in (
    (XGBClassifier, {"verbosity": 0}),
    (CatBoostClassifier, {"verbose": 0, "allow_writing_files": False, "thread_count": 1}),
    (LGBMClassifier, {"verbose": -1}),
):
    found = []
    for what, sets in (
        ("training, validation", [training, validation]),
        ("validation, training", [validation, training]),
    ):
        model = make(n_estimators=100, early_stopping_rounds=10, random_state=0, **options)
        if make is CatBoostClassifier:
            model.fit(*training, eval_set=sets)
            trees = model.tree_count_
        else:
            model.fit(*training, eval_set=sets, **({"verbose": False} if make is XGBClassifier else {}))
            trees = model.best_iteration + 1 if make is XGBClassifier else model.best_iteration_
        score = roc_auc_score(test[1], model.predict_proba(test[0])[:, 1])
        found.append(f"{what}: {trees} trees, AUC {score:.2f}")
    print(f"{make.__name__}: {'; '.join(found)}")
PYTHON

OMP_NUM_THREADS=1 venv/bin/python stopping.py | tee found
diff seen found
