#!/usr/bin/env bash
# HashingEncoder of category_encoders gives a trip from Oslo to Rome and one from Rome to Oslo the same features.
#
# Seen with: category-encoders 2.11.2, scikit-learn 1.9.1, pandas 3.1.1, numpy 2.4.6, CPython 3.11.
#
# It hashes a value without the name of its column, and counts the values of all columns in the same 8 features. Which
# column has a value is lost: sender and receiver, or home and away team, change places unnoticed. More features
# (n_components) end collisions of values, but not this. FeatureHasher of scikit-learn hashes "from=Oslo".
#
# Output seen:
#   Oslo to Rome: [1, 1, 0, 0, 0, 0, 0, 0]
#   Rome to Oslo: [1, 1, 0, 0, 0, 0, 0, 0]
#   HashingEncoder: AUC 0.54
#   HashingEncoder(n_components=256): AUC 0.54
#   OneHotEncoder: AUC 1.00
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

cat > trips.py <<'PYTHON'
import category_encoders as encoders
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

trips = pd.DataFrame({"from": ["Oslo", "Rome"], "to": ["Rome", "Oslo"]})
encoded = encoders.HashingEncoder(max_process=1).fit_transform(trips).to_numpy()
print("Oslo to Rome:", encoded[0].tolist())
print("Rome to Oslo:", encoded[1].tolist())

numbers = np.random.default_rng(0).integers(0, 20, (4000, 2))
rows = pd.DataFrame(numbers, columns=["from", "to"]).map("city {}".format)
is_north = (numbers[:, 0] > numbers[:, 1]).astype(int)
for name, encoder in (
    ("HashingEncoder", encoders.HashingEncoder(max_process=1)),
    ("HashingEncoder(n_components=256)", encoders.HashingEncoder(n_components=256, max_process=1)),
    ("OneHotEncoder", encoders.OneHotEncoder()),
):
    model = make_pipeline(encoder, RandomForestClassifier(20, random_state=0)).fit(rows[:2000], is_north[:2000])
    print(f"{name}: AUC {roc_auc_score(is_north[2000:], model.predict_proba(rows[2000:])[:, 1]):.2f}")
PYTHON

venv/bin/python trips.py | tee found
diff seen found
