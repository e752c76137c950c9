#!/usr/bin/env bash
# CatBoost predicts more than two classes as a column, and comparing it with the labels gives no accuracy.
#
# Seen with: catboost 1.2.10, numpy 2.4.6, CPython 3.11.
#
# predict of a CatBoostClassifier has the shape [n] for two classes and [n, 1] for three or more; scikit-learn, LightGBM
# and XGBoost have [n] for both. predicted == labels is then a matrix of all pairs, and its mean the chance that two
# random rows agree: a perfect model of three classes has 0.33. Code that worked for two classes goes on without an
# error.
#
# Output seen:
#   2 classes: shape (90,), score() 1.00, mean 1.00
#   3 classes: shape (90, 1), score() 1.00, mean 0.33
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check catboost==1.2.10 numpy==2.4.6 scipy==1.17.1

cat > compare.py <<'PYTHON'
import numpy as np
from catboost import CatBoostClassifier

for classes in (2, 3):
    labels = np.arange(90) % classes
    rows = labels[:, None].astype(float)
    settings = {"iterations": 20, "verbose": False, "allow_writing_files": False}
    model = CatBoostClassifier(**settings).fit(rows, labels)
    predicted = model.predict(rows)
    mean = np.mean(predicted == labels)
    print(f"{classes} classes: shape {predicted.shape}, score() {model.score(rows, labels):.2f}, mean {mean:.2f}")
PYTHON

venv/bin/python compare.py | tee found
diff seen found
