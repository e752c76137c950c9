#!/usr/bin/env bash
# Optuna's MedianPruner does not prune a trial that diverges after one good step.
#
# Seen with: optuna 5.0.0, CPython 3.11.
#
# The pruner compares the median of other trials at this step with the best value that the trial has reported so far,
# not with the present one. A loss that is low in the first epoch and then grows without bound keeps its trial alive to
# the end, at full cost, while a trial that is a little worse throughout is stopped. ThresholdPruner looks at the
# present value.
#
# Output seen:
#   even: COMPLETE after 10 epochs, last loss 0.6
#   a little worse: PRUNED after 1 epochs, last loss 0.7
#   diverges: COMPLETE after 10 epochs, last loss 1e+09
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check optuna==5.0.0

cat > prune.py <<'PYTHON'
import optuna

optuna.logging.set_verbosity(optuna.logging.ERROR)
LOSSES = {
    "even": [0.6] * 10,
    "a little worse": [0.7] * 10,
    "diverges": [0.5] + [10.0**epoch for epoch in range(1, 10)],
}


def train(trial):
    losses = list(LOSSES.values())[trial.number]
    for epoch, loss in enumerate(losses):
        trial.report(loss, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return losses[-1]


study = optuna.create_study(pruner=optuna.pruners.MedianPruner(n_startup_trials=1))
study.optimize(train, n_trials=len(LOSSES))
for name, trial in zip(LOSSES, study.trials, strict=True):
    last = trial.intermediate_values[max(trial.intermediate_values)]
    print(f"{name}: {trial.state.name} after {len(trial.intermediate_values)} epochs, last loss {last:g}")
PYTHON

venv/bin/python prune.py 2>/dev/null | tee found
diff seen found
