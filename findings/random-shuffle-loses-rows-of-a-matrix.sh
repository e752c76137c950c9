#!/usr/bin/env bash
# random.shuffle of a NumPy matrix loses rows and repeats others; a list, and a vector, it shuffles.
#
# Seen with: numpy 2.4.6, CPython 3.11.
#
# It swaps items by a, b = b, a. A row of a matrix is a view of its memory, so the second assignment copies what the
# first has just written: one of the two rows is lost at each swap. The matrix keeps its shape, and the labels beside
# it, if shuffled by the same seed, no longer belong. NumPy's shuffle keeps all rows. PyTorch's tensors are views, too.
#
# Output seen:
#   1000 rows, random.shuffle: 510 different rows left
#   1000 rows, numpy's shuffle: 1000 different rows left
#   1000 numbers, random.shuffle: 1000 different numbers left
#   1000 rows in a list, random.shuffle: 1000 different rows left
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  numpy==2.4.6

cat > shuffle.py <<'PYTHON'
import random

import numpy as np


def left(rows) -> int:
    return len({tuple(np.atleast_1d(row)) for row in rows})


matrix = np.arange(2000).reshape(1000, 2)
random.seed(0)
rows = matrix.copy()
random.shuffle(rows)
print(f"1000 rows, random.shuffle: {left(rows)} different rows left")
np.random.default_rng(0).shuffle(rows := matrix.copy())
print(f"1000 rows, numpy's shuffle: {left(rows)} different rows left")
random.shuffle(numbers := np.arange(1000))
print(f"1000 numbers, random.shuffle: {left(numbers)} different numbers left")
random.shuffle(several := list(matrix))
print(f"1000 rows in a list, random.shuffle: {left(several)} different rows left")
PYTHON

venv/bin/python shuffle.py | tee found
diff seen found
