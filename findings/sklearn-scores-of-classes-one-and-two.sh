#!/usr/bin/env bash
# For classes 1 and 2, f1_score and average_precision_score take 1 for the positive class; roc_auc_score takes 2.
#
# Seen with: scikit-learn 1.9.1, numpy 2.4.6, CPython 3.11.
#
# Nothing is said, as 1 is a valid class. Where 2 is the rare event, as in surveys and data of R, a guess at random has
# a high F1, and perfect scores have a lower average precision than scores of chance, beside a perfect AUC. Folds and
# searches with scoring="f1" then choose the model that finds the others best. Other pairs, such as 2 and 4, raise. With
# pos_label=2, or 0 and 1, all agree.
#
# Output seen:
#   classes 0 and 1, perfect scores: f1 1.000, average precision 1.000, AUC 1.000
#   classes 0 and 1, scores of chance: f1 0.175, average precision 0.104, AUC 0.519
#   classes 1 and 2, perfect scores: f1 1.000, average precision 0.744, AUC 1.000
#   classes 1 and 2, scores of chance: f1 0.646, average precision 0.897, AUC 0.519
#   classes 1 and 2, never 2: f1 0.947
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check scikit-learn==1.9.1 numpy==2.4.6

cat > score.py <<'PYTHON'
import warnings

import numpy as np
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

warnings.simplefilter("error")
random = np.random.default_rng(0)
rare = np.zeros(10_000, dtype=int)
rare[:1_000] = 1
chance = random.random(len(rare))
perfect = 0.5 * rare + 0.5 * chance
for first in (0, 1):
    labels = rare + first
    for what, scores in (("perfect scores", perfect), ("scores of chance", chance)):
        f1 = f1_score(labels, (scores >= 0.5) + first)
        average, area = average_precision_score(labels, scores), roc_auc_score(labels, scores)
        names = f"classes {first} and {first + 1}, {what}"
        print(f"{names}: f1 {f1:.3f}, average precision {average:.3f}, AUC {area:.3f}")
print(f"classes 1 and 2, never 2: f1 {f1_score(rare + 1, np.ones_like(rare)):.3f}")
PYTHON

venv/bin/python score.py 2>/dev/null | tee found
diff seen found
