#!/usr/bin/env bash
# XGBoost predicts something else for the same rows in a sparse matrix than in a dense one.
#
# Seen with: xgboost 3.2.0, lightgbm 4.7.0, scipy 1.17.1, numpy 2.4.6, CPython 3.11.
#
# A zero of a dense array is the number 0; one that a sparse matrix does not store is a missing value for XGBoost, and
# goes the way of these at each split. scikit-learn's encoders return sparse or dense matrices by how many zeros there
# are, so a model may be trained on one kind and asked with the other. Nothing is printed. LightGBM takes both for 0.
#
# Output seen:
#   XGBClassifier, trained dense: accuracy of dense rows 1.000, of sparse ones 0.562
#   LGBMClassifier, trained dense: accuracy of dense rows 1.000, of sparse ones 1.000
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

cat > predict.py <<'PYTHON'
import numpy as np
from lightgbm import LGBMClassifier
from scipy.sparse import csr_array
from xgboost import XGBClassifier

random = np.random.default_rng(0)
rows = random.random((500, 3)) * (random.random((500, 3)) < 0.5)
label = (rows[:, 0] > 0.3).astype(int)
for model in (XGBClassifier(n_estimators=5), LGBMClassifier(verbose=-1)):
    model.fit(rows, label)
    dense, sparse = model.score(rows, label), model.score(csr_array(rows), label)
    print(f"{type(model).__name__}, trained dense: accuracy of dense rows {dense:.3f}, of sparse ones {sparse:.3f}")
PYTHON

venv/bin/python predict.py 2>/dev/null | tee found
diff seen found
