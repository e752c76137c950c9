#!/usr/bin/env bash
# OneCycleLR replaces Adam's betas, and gives parameter groups of different learning rates one and the same rate.
#
# Seen with: torch 2.15.0, CPython 3.11. Installs PyTorch with CUDA.
#
# All other schedules multiply what the optimizer was given; this one sets it. max_lr, if it is one number, is the rate
# of each group: an encoder that was to learn a hundred times slower than its new head learns as fast as that. And by
# default, the first beta moves between 0.95 and 0.85, whatever the optimizer was made with, as the momentum of SGD
# does. A list for max_lr keeps the ratio, and cycle_momentum=False the betas.
#
# Output seen:
#   Adam: rates 1e-05 and 1e-03, first beta 0.50
#   LinearLR, first step: rates 3e-06 and 3e-04, first beta 0.50
#   OneCycleLR, first step: rates 4e-04 and 4e-04, first beta 0.95
#   OneCycleLR, step 30: rates 1e-02 and 1e-02, first beta 0.85
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check torch==2.15.0 numpy==2.4.6

cat > cycle.py <<'PYTHON'
import torch
from torch.optim.lr_scheduler import LinearLR, OneCycleLR


def adam():
    encoder, head = (torch.nn.Parameter(torch.zeros(1)) for _ in range(2))
    groups = [{"params": [encoder], "lr": 1e-5}, {"params": [head], "lr": 1e-3}]
    return torch.optim.Adam(groups, betas=(0.5, 0.999))


def say(when, optimizer):
    encoder, head = optimizer.param_groups
    print(f"{when}: rates {encoder['lr']:.0e} and {head['lr']:.0e}, first beta {encoder['betas'][0]:.2f}")


optimizer = adam()
say("Adam", optimizer)
LinearLR(optimizer)
say("LinearLR, first step", optimizer)
optimizer = adam()
schedule = OneCycleLR(optimizer, max_lr=1e-2, total_steps=100)
say("OneCycleLR, first step", optimizer)
for _ in range(29):
    optimizer.step()
    schedule.step()
say("OneCycleLR, step 30", optimizer)
PYTHON

venv/bin/python cycle.py 2>/dev/null | tee found
diff seen found
