#!/usr/bin/env bash
# LeaveOneOutEncoder tells trees the label of each training row, so that they do worse than with TargetEncoder.
#
# Seen with: category-encoders 2.11.2, scikit-learn 1.9.1, pandas 3.1.1, numpy 2.4.6, CPython 3.11.
#
# The mean of a city's labels without the row's own one looks like a protection from leaks. But it has two values in
# each city, and the lower one is that of the rows with label 1. Trees cut between the two, while new rows get the mean
# of all. TargetEncoder, which counts the row's own label, gives one value to all rows of a city.
#
# Output seen:
#   TargetEncoder: city 7 is [0.55] with label 0, [0.55] with 1; test AUC 0.81
#   LeaveOneOutEncoder: city 7 is [1.0] with label 0, [0.75] with 1; test AUC 0.75
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  category-encoders==2.11.2 scikit-learn==1.9.1 pandas==3.1.1 numpy==2.4.6

cat > cities.py <<'PYTHON'
import category_encoders as encoders
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

random = np.random.default_rng(0)
city = random.integers(0, 200, 4000)
labels = (random.random(4000) < random.random(200)[city]).astype(int)
rows = pd.DataFrame({"city": city.astype(str)})
for encoder in (encoders.TargetEncoder(), encoders.LeaveOneOutEncoder()):
    values = encoder.fit_transform(rows[:2000], labels[:2000])["city"]
    of_7 = [values[(city[:2000] == 7) & (labels[:2000] == label)].unique().round(2).tolist() for label in (0, 1)]
    model = make_pipeline(encoder, HistGradientBoostingClassifier(random_state=0)).fit(rows[:2000], labels[:2000])
    of_test = roc_auc_score(labels[2000:], model.predict_proba(rows[2000:])[:, 1])
    print(f"{type(encoder).__name__}: city 7 is {of_7[0]} with label 0, {of_7[1]} with 1; test AUC {of_test:.2f}")
PYTHON

venv/bin/python cities.py | tee found
diff seen found
