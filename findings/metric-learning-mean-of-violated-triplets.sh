#!/usr/bin/env bash
# The triplet loss of pytorch-metric-learning does not fall as fewer triplets violate the margin: it leaves out zeros.
#
# Seen with: pytorch-metric-learning 2.9.0, torch 2.15.0, CPython 3.11. Installs PyTorch with CUDA.
#
# PyTorch takes the mean over all triplets. This library takes it over those with a loss above zero, so that one bad
# triplet of a hundred weighs as much as a hundred. A curve that stays level, or rises, can be of a model that gets
# better; early stopping by it ends too soon, and the last hard triplets, often wrong labels, get the full learning
# rate. reducer=MeanReducer() takes the mean over all.
#
# Output seen:
#   100 of 100 triplets violate the margin: torch 0.200, pytorch-metric-learning 0.200
#   10 of 100 triplets violate the margin: torch 0.020, pytorch-metric-learning 0.200
#   1 of 100 triplets violate the margin: torch 0.002, pytorch-metric-learning 0.200
#   1 of 100 triplets violate the margin, MeanReducer: 0.002
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pytorch-metric-learning==2.9.0 torch==2.15.0

cat > triplets.py <<'PYTHON'
import torch
from pytorch_metric_learning.distances import LpDistance
from pytorch_metric_learning.losses import TripletMarginLoss
from pytorch_metric_learning.reducers import MeanReducer

distance = LpDistance(normalize_embeddings=False)
TRIPLETS = 100
rows = torch.arange(TRIPLETS)
indices = (rows, rows + TRIPLETS, rows + 2 * TRIPLETS)
labels = torch.zeros(3 * TRIPLETS)  # not used, as the triplets are given

for bad in (100, 10, 1):
    anchors = torch.zeros(TRIPLETS, 1)
    positives = torch.ones(TRIPLETS, 1)
    negatives = torch.where(rows < bad, 1.0, 5.0).reshape(-1, 1)
    by_torch = torch.nn.TripletMarginLoss(margin=0.2)(anchors, positives, negatives)
    embeddings = torch.cat([anchors, positives, negatives])
    by_library = TripletMarginLoss(margin=0.2, distance=distance)(embeddings, labels, indices)
    what = f"{bad} of {TRIPLETS} triplets violate the margin"
    print(f"{what}: torch {by_torch:.3f}, pytorch-metric-learning {by_library:.3f}")
mean = TripletMarginLoss(margin=0.2, distance=distance, reducer=MeanReducer())(embeddings, labels, indices)
print(f"{what}, MeanReducer: {mean:.3f}")
PYTHON

venv/bin/python triplets.py 2>/dev/null | tee found
diff seen found
