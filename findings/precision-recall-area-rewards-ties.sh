#!/usr/bin/env bash
# The area under the precision-recall curve is 0.5 for a model that gives all rows one score, if trapezoids are summed.
#
# Seen with: scikit-learn 1.9.1, numpy 2.4.6, CPython 3.11.
#
# precision_recall_curve ends at recall 0 with a precision of 1 that no threshold has. auc, which takes any two lists,
# draws a line to there, and the fewer different scores a model gives, the longer is this line: the coarser model gets
# the higher area. average_precision_score gives 0.01, the share of the class, to the first, as other libraries do.
# Rounding scores, or the few leaves of a small tree, so raises a figure that is reported under the same name.
#
# Output seen:
#   one score for all, 1% positive: auc(recall, precision) 0.505, average_precision_score 0.010
#   random scores: auc(recall, precision) 0.010, average_precision_score 0.011
#   good scores: auc(recall, precision) 0.344, average_precision_score 0.346
#   good scores, cut at one threshold: auc(recall, precision) 0.394, average_precision_score 0.069
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  scikit-learn==1.9.1 numpy==2.4.6

cat > area.py <<'PYTHON'
import numpy as np
from sklearn.metrics import auc, average_precision_score, precision_recall_curve

random = np.random.default_rng(0)
labels = np.zeros(10_000, dtype=int)
labels[:100] = 1
good = 2 * labels + random.normal(size=len(labels))
for what, scores in (
    ("one score for all, 1% positive", np.full(len(labels), 0.5)),
    ("random scores", random.random(len(labels))),
    ("good scores", good),
    ("good scores, cut at one threshold", good > 1.5),
):
    precision, recall, _ = precision_recall_curve(labels, scores)
    area, average = auc(recall, precision), average_precision_score(labels, scores)
    print(f"{what}: auc(recall, precision) {area:.3f}, average_precision_score {average:.3f}")
PYTHON

venv/bin/python area.py | tee found
diff seen found
