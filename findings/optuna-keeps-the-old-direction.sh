#!/usr/bin/env bash
# Optuna ignores direction="maximize" where load_if_exists finds a study, and goes on to look for the worst.
#
# Seen with: optuna 5.0.0, CPython 3.11.
#
# The direction of a study is stored when it is created. A script that is corrected from the default, minimize, to
# maximize, and is run again with the same name, gets the old study without a word: the sampler looks for low scores,
# best_value is the lowest, and all new trials are spent on it. A wrong direction shows only in study.direction.
#
# Output seen:
#   asked for: maximize, study.direction: MINIMIZE
#   accuracies 0.6 0.7 0.9, best_value: 0.6
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  optuna==5.0.0

cat > direction.py <<'PYTHON'
import warnings

import optuna
from optuna.trial import create_trial

warnings.simplefilter("error")
options = {"study_name": "accuracy", "storage": "sqlite:///studies.db", "load_if_exists": True}
study = optuna.create_study(**options)
study.add_trial(create_trial(value=0.6))
study = optuna.create_study(direction="maximize", **options)
print(f"asked for: maximize, study.direction: {study.direction.name}")
for accuracy in (0.7, 0.9):
    study.add_trial(create_trial(value=accuracy))
accuracies = " ".join(str(trial.value) for trial in study.trials)
print(f"accuracies {accuracies}, best_value: {study.best_value}")
PYTHON

venv/bin/python direction.py | tee found
diff seen found
