#!/usr/bin/env bash
# emlearn converts a forest that is always right into one that guesses, as it cuts numbers to 16-bit integers.
#
# Seen with: emlearn 0.23.2, scikit-learn 1.9.1, numpy 2.4.6, CPython 3.11.
#
# emlearn makes C code of scikit-learn's trees for small devices. Unless told otherwise it makes both thresholds and
# features 16-bit integers, without a scale: where features lie between 0 and 1, as after MinMaxScaler, all of them are
# 0. No error or warning is given, and features of large numbers, such as raw sensor values, work. dtype="float", or
# features that were multiplied before training, avoid it.
#
# Output seen:
#   features from 0 to 1, {}: scikit-learn 1.00, emlearn 0.49
#   features from 0 to 1, {'dtype': 'float'}: scikit-learn 1.00, emlearn 1.00
#   features from 0 to 1000, {}: scikit-learn 1.00, emlearn 1.00
#   features from 0 to 1000, {'dtype': 'float'}: scikit-learn 1.00, emlearn 1.00
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check emlearn==0.23.2 scikit-learn==1.9.1 numpy==2.4.6

cat > cut.py <<'PYTHON'
import emlearn
import numpy as np
from sklearn.ensemble import RandomForestClassifier

random = np.random.default_rng(0)
rows = random.random((1000, 3))
labels = (rows[:, 0] + rows[:, 1] > 1).astype(int)
for scale in (1, 1000):
    forest = RandomForestClassifier(10, random_state=0).fit(rows * scale, labels)
    for kwargs in ({}, {"dtype": "float"}):
        converted = emlearn.convert(forest, method="inline", **kwargs)
        accuracy = (converted.predict(rows * scale) == labels).mean()
        print(f"features from 0 to {scale}, {kwargs}: scikit-learn {forest.score(rows * scale, labels):.2f}", end="")
        print(f", emlearn {accuracy:.2f}")
PYTHON

venv/bin/python cut.py | tee found
diff seen found
