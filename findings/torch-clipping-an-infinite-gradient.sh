#!/usr/bin/env bash
# Clipping by norm makes an infinite gradient NaN, and all other gradients 0; clip_grad_value_ makes it finite.
#
# Seen with: torch 2.15.0, CPython 3.11. Installs PyTorch with CUDA.
#
# The norm is infinite, so that all gradients are multiplied by 0: infinity becomes NaN, which the optimizer writes into
# that weight, and the rest of the model skips a step. The next forward pass is NaN for all rows. Clipping, which is
# there for large gradients, so passes on the largest. The norm that is returned tells; error_if_nonfinite=True raises.
#
# Output seen:
#   gradients: 1.0 inf 2.0
#   clip_grad_norm_ returns inf, gradients: 0.0 nan 0.0
#   weights after a step of SGD: 5.0 nan 5.0
#   clip_grad_value_, gradients: 1.0 1.0 1.0
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check torch==2.15.0 numpy==2.4.6

cat > clip.py <<'PYTHON'
import warnings

import torch

warnings.simplefilter("error")


def parameters():
    weights = [torch.nn.Parameter(torch.tensor(5.0)) for _ in range(3)]
    for weight, gradient in zip(weights, (1.0, float("inf"), 2.0), strict=True):
        weight.grad = torch.tensor(gradient)
    return weights


def listed(tensors):
    return " ".join(str(tensor.item()) for tensor in tensors)


weights = parameters()
print("gradients:", listed(weight.grad for weight in weights))
norm = torch.nn.utils.clip_grad_norm_(weights, max_norm=1.0)
print(f"clip_grad_norm_ returns {norm}, gradients:", listed(weight.grad for weight in weights))
torch.optim.SGD(weights, lr=0.1).step()
print("weights after a step of SGD:", listed(weights))
weights = parameters()
torch.nn.utils.clip_grad_value_(weights, clip_value=1.0)
print("clip_grad_value_, gradients:", listed(weight.grad for weight in weights))
PYTHON

venv/bin/python clip.py 2>/dev/null | tee found
diff seen found
