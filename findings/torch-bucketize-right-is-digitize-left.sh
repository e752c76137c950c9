#!/usr/bin/env bash
# right=True of torch.bucketize is right=False of numpy.digitize, and their defaults differ for numbers on a boundary.
#
# Seen with: torch 2.15.0, numpy 2.4.6, pandas 3.1.1, CPython 3.11. Installs PyTorch with CUDA.
#
# Both take the numbers, the boundaries and right=. In NumPy it says which edge belongs to a bin, in PyTorch on which
# side of equal boundaries to insert. With equal arguments, every number that equals a boundary gets another bin:
# features binned in a data pipeline by one and in the model by the other differ for all of them, as do ages, stars and
# other whole numbers, which often lie on boundaries. searchsorted has the same meaning in both.
#
# Output seen:
#   ages: 17 18 40 65
#   numpy.digitize: 0 1 1 2
#   torch.bucketize: 0 0 1 1
#   numpy.digitize, right=True: 0 0 1 1
#   torch.bucketize, right=True: 0 1 1 2
#   pandas.cut, right=True: 0 0 1 1
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check torch==2.15.0 numpy==2.4.6 pandas==3.1.1

cat > bins.py <<'PYTHON'
import numpy as np
import pandas as pd
import torch

ages, bounds = np.array([17, 18, 40, 65]), np.array([18, 65])
print("ages:", *ages)
print("numpy.digitize:", *np.digitize(ages, bounds))
print("torch.bucketize:", *torch.bucketize(torch.tensor(ages), torch.tensor(bounds)).tolist())
print("numpy.digitize, right=True:", *np.digitize(ages, bounds, right=True))
print("torch.bucketize, right=True:", *torch.bucketize(torch.tensor(ages), torch.tensor(bounds), right=True).tolist())
print("pandas.cut, right=True:", *pd.cut(ages, [0, *bounds, 200], labels=False, right=True))
PYTHON

venv/bin/python bins.py 2>/dev/null | tee found
diff seen found
