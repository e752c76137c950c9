#!/usr/bin/env bash
# LightGBM takes the columns of a table by their places when it predicts, whatever their names are.
#
# Seen with: lightgbm 4.7.0, catboost 1.2.10, xgboost 3.2.0, scikit-learn 1.9.1, pandas 3.1.1, CPython 3.11.
#
# The model keeps the names of the columns of its table and shows them, but predict does not look at those of a new one:
# a query or a join that gives the columns in another order, or other columns of the same number, makes the scores those
# of chance. XGBoost and scikit-learn refuse such a table, and CatBoost finds the columns by name.
# predict(validate_features=True) raises.
#
# Output seen:
#   LGBMClassifier: accuracy in order 1.00, in another order 0.53, of other names 0.53
#   CatBoostClassifier: accuracy in order 1.00, in another order 1.00, of other names CatBoostError
#   XGBClassifier: accuracy in order 1.00, in another order ValueError, of other names ValueError
#   HistGradientBoostingClassifier: accuracy in order 1.00, in another order ValueError, of other names ValueError
#   LGBMClassifier, validate_features=True: LightGBMError
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  lightgbm==4.7.0 catboost==1.2.10 xgboost==3.2.0 scikit-learn==1.9.1 pandas==3.1.1 numpy==2.4.6

cat > columns.py <<'PYTHON'
import catboost
import lightgbm
import numpy as np
import pandas as pd
import xgboost
from sklearn.ensemble import HistGradientBoostingClassifier

random = np.random.default_rng(0)
rows = pd.DataFrame(random.normal(size=(2000, 3)), columns=["age", "dose", "weight"])
label = (rows["age"] + 0.3 * rows["dose"] > 0).astype(int)
tables = {
    "in order": rows,
    "in another order": rows[["weight", "dose", "age"]],
    "of other names": rows[["weight", "dose", "age"]].rename(columns={"dose": "height"}),
}
models = [
    lightgbm.LGBMClassifier(n_estimators=20, n_jobs=1, verbosity=-1),
    catboost.CatBoostClassifier(iterations=20, thread_count=1, verbose=0, allow_writing_files=False),
    xgboost.XGBClassifier(n_estimators=20, n_jobs=1),
    HistGradientBoostingClassifier(max_iter=20),
]


def accuracy(predict, table, **options):
    try:
        return f"{np.mean(np.ravel(predict(table, **options)) == label):.2f}"
    except Exception as error:
        return type(error).__name__


for model in models:
    model.fit(rows, label)
    found = (f"{how} {accuracy(model.predict, table)}" for how, table in tables.items())
    print(f"{type(model).__name__}: accuracy", ", ".join(found))
checked = accuracy(models[0].predict, tables["in another order"], validate_features=True)
print("LGBMClassifier, validate_features=True:", checked)
PYTHON

venv/bin/python columns.py | tee found
diff seen found
