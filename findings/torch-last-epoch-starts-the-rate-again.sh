#!/usr/bin/env bash
# A learning rate schedule that is resumed by last_epoch goes on from the full rate, unless it is a LambdaLR.
#
# Seen with: torch 2.15.0, CPython 3.11. Installs PyTorch with CUDA.
#
# last_epoch is the number of the last epoch, which a new schedule after a restart takes. LambdaLR computes the rate of
# that epoch. The others multiply the optimizer's present rate by the step from one epoch to the next, and a new
# optimizer has the full one: training goes on many times too fast, without a warning. load_state_dict of optimizer and
# schedule does bring the rate back, but also the old length: CosineAnnealingLR for 20 epochs becomes one for 10, and
# beyond it the rate climbs again.
#
# Output seen:
#   LambdaLR, epoch 8: 0.20; resumed by last_epoch=7: 0.20
#   CosineAnnealingLR, epoch 8: 0.10; resumed by last_epoch=7: 1.00
#   LinearLR, epoch 8: 0.28; resumed by last_epoch=7: 1.00
#   ExponentialLR, epoch 8: 0.17; resumed by last_epoch=7: 1.00
#   10 epochs, then loaded into 20: 0.00 0.21 0.65 0.98
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check torch==2.15.0 numpy==2.4.6

cat > resume.py <<'PYTHON'
import torch
from torch.optim import lr_scheduler

SCHEDULES = {
    "LambdaLR": lambda optimizer, last: lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 - epoch / 10, last_epoch=last),
    "CosineAnnealingLR": lambda optimizer, last: lr_scheduler.CosineAnnealingLR(optimizer, 10, last_epoch=last),
    "LinearLR": lambda optimizer, last: lr_scheduler.LinearLR(optimizer, 1.0, 0.1, 10, last_epoch=last),
    "ExponentialLR": lambda optimizer, last: lr_scheduler.ExponentialLR(optimizer, 0.8, last_epoch=last),
}


def new_optimizer():
    return torch.optim.SGD([{"params": [torch.nn.Parameter(torch.zeros(1))], "initial_lr": 1.0}], lr=1.0)


def rates(optimizer, schedule, epochs):
    found = []
    for _ in range(epochs):
        found.append(f"{optimizer.param_groups[0]['lr']:.2f}")
        optimizer.step()
        schedule.step()
    return found


for name, make in SCHEDULES.items():
    whole, resumed = new_optimizer(), new_optimizer()
    epoch_8 = rates(whole, make(whole, -1), 9)[8]
    print(f"{name}, epoch 8: {epoch_8}; resumed by last_epoch=7: {rates(resumed, make(resumed, 7), 1)[0]}")
first, second = new_optimizer(), new_optimizer()
schedule = lr_scheduler.CosineAnnealingLR(first, 10)
rates(first, schedule, 10)
longer = lr_scheduler.CosineAnnealingLR(second, 20)
second.load_state_dict(first.state_dict())
longer.load_state_dict(schedule.state_dict())
print("10 epochs, then loaded into 20:", *rates(second, longer, 10)[::3])
PYTHON

venv/bin/python resume.py 2>/dev/null | tee found
diff seen found
