#!/usr/bin/env bash
# torchmetrics' F1Score(task="multiclass") is the micro F1, and so the accuracy; MulticlassF1Score is the macro F1.
#
# Seen with: torchmetrics 1.9.0, torch 2.15.0, CPython 3.11. Installs PyTorch with CUDA.
#
# The first makes an object of the second class, but has another default for average=. So have precision, recall and
# accuracy: where the classes are not of one size, Accuracy(task="multiclass") counts correct rows, and
# MulticlassAccuracy gives the mean recall of the classes. For a model that never finds a rare class, the two F1 scores
# are as far apart as below, and either is logged as "f1".
#
# Output seen:
#   95 rows of class 0, 5 of class 1, all predicted as class 0
#   F1Score(task="multiclass"): 0.950, MulticlassF1Score: 0.487
#   Precision(task="multiclass"): 0.950, MulticlassPrecision: 0.475
#   Recall(task="multiclass"): 0.950, MulticlassRecall: 0.500
#   Accuracy(task="multiclass"): 0.950, MulticlassAccuracy: 0.500
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check torchmetrics==1.9.0 torch==2.15.0

cat > average.py <<'PYTHON'
import warnings

import torch
import torchmetrics
from torchmetrics import classification

warnings.simplefilter("error", UserWarning)
labels = torch.tensor([0] * 95 + [1] * 5)
predictions = torch.zeros_like(labels)
print("95 rows of class 0, 5 of class 1, all predicted as class 0")
for name in ("F1Score", "Precision", "Recall", "Accuracy"):
    by_task = getattr(torchmetrics, name)(task="multiclass", num_classes=2)(predictions, labels)
    of_class = getattr(classification, f"Multiclass{name}")(num_classes=2)(predictions, labels)
    print(f'{name}(task="multiclass"): {by_task:.3f}, Multiclass{name}: {of_class:.3f}')
PYTHON

venv/bin/python average.py 2>/dev/null | tee found
diff seen found
