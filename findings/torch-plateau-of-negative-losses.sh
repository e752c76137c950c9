#!/usr/bin/env bash
# ReduceLROnPlateau never lowers the learning rate while the loss is below zero, even if it grows.
#
# Seen with: torch 2.15.0, CPython 3.11. Installs PyTorch with CUDA.
#
# Better means lower than best * (1 - threshold), with a threshold of 0.0001. For a negative best, that is a number
# above it: a loss that stays at -1, or gets a little worse with every epoch, counts as an improvement each time, and
# becomes the new best. Log-likelihoods of densities and negated scores are such losses; with mode="max", so are
# negative scores, such as R2 of a bad model. threshold_mode="abs" has no such turn.
#
# Output seen:
#   loss stays at 1: learning rate 1e-06
#   loss stays at -1: learning rate 1e+00
#   loss grows from -1.0 to -0.99905: learning rate 1e+00
#   the same, threshold_mode="abs": learning rate 1e-06
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check torch==2.15.0 numpy==2.4.6

cat > plateau.py <<'PYTHON'
import torch


def rate_after(losses, **options):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2, **options)
    for loss in losses:
        scheduler.step(loss)
    return f"{optimizer.param_groups[0]['lr']:.0e}"


EPOCHS = 20
print("loss stays at 1: learning rate", rate_after([1.0] * EPOCHS))
print("loss stays at -1: learning rate", rate_after([-1.0] * EPOCHS))
worse = [-1 + 0.00005 * epoch for epoch in range(EPOCHS)]
print(f"loss grows from {worse[0]} to {worse[-1]:.5f}: learning rate", rate_after(worse))
print('the same, threshold_mode="abs": learning rate', rate_after(worse, threshold_mode="abs"))
PYTHON

venv/bin/python plateau.py 2>/dev/null | tee found
diff seen found
