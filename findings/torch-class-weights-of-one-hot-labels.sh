#!/usr/bin/env bash
# cross_entropy with class weights gives another loss for labels as one-hot rows than for the same as numbers.
#
# Seen with: torch 2.15.0, CPython 3.11. Installs PyTorch with CUDA.
#
# For numbers of classes, the mean is divided by the sum of the weights of the labels; for probabilities, which mixup
# and soft labels need, by the number of rows. Weights above 1 for rare classes then multiply the loss, and so the
# gradient: it is as if the learning rate were several times as high, and more so in batches with more rare rows.
# Without weights, both are equal.
#
# Output seen:
#   no weights: numbers 0.6951, one-hot rows 0.6951
#   weights 1, 10, 1: numbers 0.8904, one-hot rows 6.2326
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check torch==2.15.0 numpy==2.4.6

cat > weigh.py <<'PYTHON'
import torch
from torch.nn.functional import cross_entropy, one_hot

scores = torch.tensor([[2.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.5]])
labels = torch.tensor([0, 1, 1])
for what, weight in (("no weights", None), ("weights 1, 10, 1", torch.tensor([1.0, 10.0, 1.0]))):
    rows = one_hot(labels, 3).float()
    numbers, probabilities = (cross_entropy(scores, given, weight=weight) for given in (labels, rows))
    print(f"{what}: numbers {numbers:.4f}, one-hot rows {probabilities:.4f}")
PYTHON

venv/bin/python weigh.py 2>/dev/null | tee found
diff seen found
