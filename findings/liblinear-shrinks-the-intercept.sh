#!/usr/bin/env bash
# LogisticRegression with liblinear gives a rare event many times its probability, as it shrinks the intercept, too.
#
# Seen with: scikit-learn 1.9.1, numpy 2.4.6, CPython 3.11.
#
# C regularizes the coefficients, and the other solvers leave the intercept alone, so that the mean of the probabilities
# is the share of the event. liblinear, which is taken for penalty l1 or small data, counts the intercept as one more
# coefficient: the stronger the regularization, the nearer are all probabilities to one half. The order of the rows, and
# so the AUC, shows nothing, but a threshold, a cost or a calibration does. LinearSVC is built on the same.
#
# Output seen:
#   share of the event: 0.009
#   C=1: lbfgs 0.009, newton-cg 0.009, liblinear 0.009
#   C=0.001: lbfgs 0.009, newton-cg 0.009, liblinear 0.168
#   C=0.0001: lbfgs 0.009, newton-cg 0.009, liblinear 0.403
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

cat > intercept.py <<'PYTHON'
import numpy as np
from sklearn.linear_model import LogisticRegression

random = np.random.default_rng(0)
rows = random.normal(size=(10_000, 5))
events = (random.random(10_000) < 0.01).astype(int)
print(f"share of the event: {events.mean():.3f}")
for strength in (1, 0.001, 0.0001):
    means = {}
    for solver in ("lbfgs", "newton-cg", "liblinear"):
        model = LogisticRegression(C=strength, solver=solver, max_iter=1000).fit(rows, events)
        means[solver] = model.predict_proba(rows)[:, 1].mean()
    print(f"C={strength}:", ", ".join(f"{solver} {mean:.3f}" for solver, mean in means.items()))
PYTHON

venv/bin/python intercept.py | tee found
diff seen found
