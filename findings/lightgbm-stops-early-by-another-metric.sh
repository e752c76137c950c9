#!/usr/bin/env bash
# LightGBM's classifier stops early by log loss, too, if fit(eval_metric="auc") names the AUC alone.
#
# Seen with: lightgbm 4.7.0, numpy 2.4.6, scikit-learn 1.9.1, CPython 3.11.
#
# eval_metric adds to the metric of the objective, and early_stopping ends at the first metric that does not improve any
# more. Log loss begins to grow earlier than the AUC ends to grow, so best_iteration_ is that of the log loss, and
# predict() uses so many trees. metric="auc" for the constructor replaces the objective's metric.
#
# Output seen:
#   fit(eval_metric="auc"): 3 trees; best log loss at 3, best AUC at 7; AUC 0.644
#   LGBMClassifier(metric="auc"): 7 trees; best AUC at 7; AUC 0.665
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check lightgbm==4.7.0 numpy==2.4.6 scikit-learn==1.9.1

cat > stop.py <<'PYTHON'
import warnings

import lightgbm
import numpy as np
from sklearn.metrics import roc_auc_score

warnings.simplefilter("ignore")
random = np.random.default_rng(5)
x = random.normal(size=(2000, 10))
y = (x[:, 0] + random.normal(size=2000) * 2 > 1.5).astype(int)


def report(what, fit=None, **constructor):
    model = lightgbm.LGBMClassifier(n_estimators=500, learning_rate=0.3, verbosity=-1, n_jobs=1, **constructor)
    stop = lightgbm.early_stopping(20, verbose=False)
    model.fit(x[:1000], y[:1000], eval_set=[(x[1000:], y[1000:])], callbacks=[stop], **(fit or {}))
    history = model.evals_result_["valid_0"]
    losses = f"best log loss at {np.argmin(history['binary_logloss']) + 1}, " if "binary_logloss" in history else ""
    auc = roc_auc_score(y[1000:], model.predict_proba(x[1000:])[:, 1])
    print(f"{what}: {model.best_iteration_} trees; {losses}best AUC at {np.argmax(history['auc']) + 1}; AUC {auc:.3f}")


report('fit(eval_metric="auc")', fit={"eval_metric": "auc"})
report('LGBMClassifier(metric="auc")', metric="auc")
PYTHON

venv/bin/python stop.py | tee found
diff seen found
