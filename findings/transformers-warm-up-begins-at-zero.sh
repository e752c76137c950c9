#!/usr/bin/env bash
# The first step of transformers' warm-up has a learning rate of 0 and changes nothing; PyTorch's begins at a third.
#
# Seen with: transformers 5.23.0, torch 2.15.0, CPython 3.11. Installs PyTorch with CUDA.
#
# A warm-up of n steps there is one of n - 1, and one of a single step is a step without an update. With a pretrained
# model and thousands of steps, nobody notices. In few-shot training of ten steps, a tenth of the rows is never learned
# from; a check that one step changes the weights fails; and a schedule that is made anew for each epoch loses a step
# each time.
#
# Output seen:
#   get_linear_schedule_with_warmup, 1 step: rates 0.00 1.00 0.89 0.78, weight after the first step: 5.0
#   get_linear_schedule_with_warmup, 3 steps: rates 0.00 0.33 0.67 1.00, weight after the first step: 5.0
#   LinearLR, 3 steps: rates 0.33 0.56 0.78 1.00, weight after the first step: 4.7
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check transformers==5.23.0 torch==2.15.0

cat > warm.py <<'PYTHON'
import warnings

import torch
from torch.optim.lr_scheduler import LinearLR
from transformers import get_linear_schedule_with_warmup

warnings.simplefilter("error")


def warm(what, schedule_of):
    weight = torch.nn.Parameter(torch.tensor(5.0))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    schedule = schedule_of(optimizer)
    rates, weights = [], []
    for _ in range(4):
        rates.append(f"{optimizer.param_groups[0]['lr']:.2f}")
        weight.grad = torch.tensor(1.0)
        optimizer.step()
        schedule.step()
        weights.append(weight.item())
    print(f"{what}: rates {' '.join(rates)}, weight after the first step: {weights[0]:.1f}")


for steps, named in ((1, "1 step"), (3, "3 steps")):
    warm(
        f"get_linear_schedule_with_warmup, {named}",
        lambda optimizer, steps=steps: get_linear_schedule_with_warmup(optimizer, steps, 10),
    )
warm("LinearLR, 3 steps", lambda optimizer: LinearLR(optimizer, total_iters=3))
PYTHON

venv/bin/python warm.py 2>/dev/null | tee found
diff seen found
