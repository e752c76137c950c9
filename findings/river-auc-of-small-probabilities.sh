#!/usr/bin/env bash
# river gives an AUC of 0.5 to scores that separate two classes perfectly, if all of them are below 0.1.
#
# Seen with: river 0.26.1, scikit-learn 1.9.1, numpy 2.4.6, CPython 3.11.
#
# A stream has no end, so ROCAUC counts at ten thresholds between 0 and 1 instead of ranking, and the area does not grow
# for scores that lie between two of them. Probabilities of a rare event, such as a click or a fraud, are all below the
# first: a perfect model has the AUC of chance, and one that gets better does not seem to. Multiplied by 20 the same
# scores have 1.0, though an AUC depends on nothing but the order. n_thresholds=1000 helps in part, RollingROCAUC ranks.
#
# Output seen:
#   perfect, 0.00 to 0.04: scikit-learn 1.00, ROCAUC 0.50, n_thresholds=1000 1.00, RollingROCAUC 1.00
#   the same, times 20: scikit-learn 1.00, ROCAUC 1.00, n_thresholds=1000 1.00, RollingROCAUC 1.00
#   good, 0.00 to 0.02: scikit-learn 0.92, ROCAUC 0.50, n_thresholds=1000 0.93, RollingROCAUC 0.92
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check river==0.26.1 scikit-learn==1.9.1 numpy==2.4.6

cat > auc.py <<'PYTHON'
import numpy as np
from river import metrics
from sklearn.metrics import roc_auc_score

random = np.random.default_rng(0)
label = random.random(4000) < 0.02
noise = random.random(4000) * 0.01


def of_river(metric, scores):
    for is_positive, score in zip(label.tolist(), scores.tolist(), strict=True):
        metric.update(is_positive, score)
    return metric.get()


for what, scores in {
    "perfect, 0.00 to 0.04": np.where(label, 0.03, 0) + noise,
    "the same, times 20": 20 * (np.where(label, 0.03, 0) + noise),
    "good, 0.00 to 0.02": np.where(label, 0.006, 0) + noise,
}.items():
    found = {
        "scikit-learn": roc_auc_score(label, scores),
        "ROCAUC": of_river(metrics.ROCAUC(), scores),
        "n_thresholds=1000": of_river(metrics.ROCAUC(n_thresholds=1000), scores),
        "RollingROCAUC": of_river(metrics.RollingROCAUC(window_size=len(label)), scores),
    }
    print(f"{what}:", ", ".join(f"{name} {value:.2f}" for name, value in found.items()))
PYTHON

venv/bin/python auc.py | tee found
diff seen found
