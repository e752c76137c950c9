#!/usr/bin/env bash
# safetensors writes other numbers than a NumPy array has, if the array is a transposed or sliced one.
#
# Seen with: safetensors 0.8.0, numpy 2.4.6, CPython 3.11.
#
# safetensors.numpy writes the memory behind an array, without its strides: a view such as weights.T or weights[:, ::2]
# comes back with the right shape and type, and with other numbers in its places. No error is raised, as
# safetensors.torch does for such a tensor. np.ascontiguousarray before it is the remedy.
#
# Output seen:
#   weights: saved [[0, 1, 2], [3, 4, 5]], loaded [[0, 1, 2], [3, 4, 5]]
#   weights.T: saved [[0, 3], [1, 4], [2, 5]], loaded [[0, 1], [2, 3], [4, 5]]
#   weights[:, ::2]: saved [[0, 2], [3, 5]], loaded [[0, 1], [2, 3]]
#   ascontiguousarray(weights.T): saved [[0, 3], [1, 4], [2, 5]], loaded [[0, 3], [1, 4], [2, 5]]
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check safetensors==0.8.0 numpy==2.4.6

cat > save.py <<'PYTHON'
import numpy as np
from safetensors.numpy import load_file, save_file

weights = np.arange(6).reshape(2, 3)
for what, array in (
    ("weights", weights),
    ("weights.T", weights.T),
    ("weights[:, ::2]", weights[:, ::2]),
    ("ascontiguousarray(weights.T)", np.ascontiguousarray(weights.T)),
):
    save_file({"w": array}, "weights.safetensors")
    print(f"{what}: saved {array.tolist()}, loaded {load_file('weights.safetensors')['w'].tolist()}")
PYTHON

venv/bin/python save.py | tee found
diff seen found
