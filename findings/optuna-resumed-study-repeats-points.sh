#!/usr/bin/env bash
# An Optuna study that is resumed with the same seed tries the points again that it has tried already.
#
# Seen with: optuna 5.0.0, CPython 3.11.
#
# The study's storage keeps the trials, but not the state of the sampler: a new process makes a new sampler, whose seed
# starts the same sequence again. TPE's first ten trials are random, so a search that is resumed before that trains the
# same models twice, and its result differs from that of an uninterrupted search. Without a seed, the points differ.
#
# Output seen:
#   uninterrupted: 0.417 0.720 0.000 0.302 0.147 0.092
#   resumed after 3: 0.417 0.720 0.000 0.417 0.720 0.000
#
# Fails if either line differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check optuna==5.0.0

cat > search.py <<'PYTHON'
import sys

import optuna

optuna.logging.set_verbosity(optuna.logging.ERROR)
name, trials = sys.argv[1:]
sampler = optuna.samplers.TPESampler(seed=1)
study = optuna.create_study(storage="sqlite:///studies.db", study_name=name, sampler=sampler, load_if_exists=True)
study.optimize(lambda trial: (trial.suggest_float("x", 0, 1) - 0.8) ** 2, n_trials=int(trials))
print(" ".join(f"{trial.params['x']:.3f}" for trial in study.trials))
PYTHON

{
  echo "uninterrupted: $(venv/bin/python search.py uninterrupted 6 2> /dev/null)"
  venv/bin/python search.py resumed 3 > /dev/null 2>&1
  echo "resumed after 3: $(venv/bin/python search.py resumed 3 2> /dev/null)"
} | tee found
diff seen found
