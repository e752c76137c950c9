#!/usr/bin/env bash
# An optimizer that knows the names of its parameters still loads a state by their order, and then reports wrong names.
#
# Seen with: torch 2.15.0, CPython 3.11. Installs PyTorch with CUDA.
#
# Optimizers take named_parameters(), and their state_dict holds param_names. load_state_dict does not compare them:
# where the order differs, as after a change of the model's code, each parameter of the same shape gets the moments of
# another, without a word. param_names afterwards are those of the file, so that even a check by them finds nothing.
#
# Output seen:
#   first moments, saved: {'a': 1.0, 'b': 50.0}
#   parameters of the new optimizer: ['b', 'a']
#   first moments, loaded: {'a': 50.0, 'b': 1.0}
#   parameters afterwards: ['a', 'b']
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check torch==2.15.0 numpy==2.4.6

cat > load.py <<'PYTHON'
import torch


def optimizer(order, gradients=None):
    weights = {name: torch.nn.Parameter(torch.zeros(1)) for name in order}
    adam = torch.optim.Adam(weights.items())
    for name, gradient in (gradients or {}).items():
        weights[name].grad = torch.tensor([gradient])
    adam.step()
    return adam, weights


def moments(adam, weights):
    return {name: round(adam.state[weights[name]]["exp_avg"].item(), 1) for name in sorted(weights)}


saved, weights = optimizer(["a", "b"], {"a": 10.0, "b": 500.0})
print("first moments, saved:", moments(saved, weights))
loaded, weights = optimizer(["b", "a"])
print("parameters of the new optimizer:", loaded.state_dict()["param_groups"][0]["param_names"])
loaded.load_state_dict(saved.state_dict())
print("first moments, loaded:", moments(loaded, weights))
print("parameters afterwards:", loaded.state_dict()["param_groups"][0]["param_names"])
PYTHON

venv/bin/python load.py 2>/dev/null | tee found
diff seen found
