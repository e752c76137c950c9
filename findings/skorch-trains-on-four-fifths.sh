#!/usr/bin/env bash
# skorch trains on 80 of 100 rows, and uses the other 20 for nothing but a number that it prints.
#
# Seen with: skorch 1.4.0, torch 2.15.0, scikit-learn 1.9.1, CPython 3.11. Installs PyTorch with CUDA.
#
# A net takes the place of an estimator of scikit-learn, but fit cuts a fifth of the rows off first. No early stopping
# comes with it. In five folds, each model sees 64% of the rows beside 80% of all others compared, and the final fit of
# a search, which is to use everything, does not. The rows of a regression are not shuffled: sorted by time or target,
# it never sees the first fifth. train_split=None trains on all.
#
# Output seen:
#   fit, 100 rows: trained on 80
#   five folds of 100 rows: trained on 64 64 64 64 64
#   train_split=None: trained on 100
#   regression, targets 0 to 99: trained on 20 to 99
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check skorch==1.4.0 torch==2.15.0 scikit-learn==1.9.1

cat > fit.py <<'PYTHON'
import warnings

import numpy as np
import torch
from sklearn.model_selection import cross_val_score
from skorch import NeuralNetClassifier, NeuralNetRegressor

warnings.simplefilter("error", UserWarning)
seen = []  # the rows of each net


class Net(torch.nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.layer = torch.nn.Linear(1, outputs)
        seen.append([])

    def forward(self, rows):
        if self.training:
            seen[-1].extend(rows.flatten().tolist())
        return self.layer(rows) if self.layer.out_features == 1 else self.layer(rows).softmax(-1)


def net(kind, outputs, **options):
    return kind(Net, module__outputs=outputs, max_epochs=1, batch_size=1000, verbose=0, **options)


numbers = np.arange(100, dtype=np.float32).reshape(-1, 1)
labels = np.arange(100) % 2
net(NeuralNetClassifier, 2).fit(numbers, labels)
print("fit, 100 rows: trained on", len(seen[-1]))
cross_val_score(net(NeuralNetClassifier, 2), numbers, labels, cv=5)
print("five folds of 100 rows: trained on", *(len(rows) for rows in seen[-5:]))
net(NeuralNetClassifier, 2, train_split=None).fit(numbers, labels)
print("train_split=None: trained on", len(seen[-1]))
net(NeuralNetRegressor, 1).fit(numbers, numbers)
print(f"regression, targets 0 to 99: trained on {min(seen[-1]):.0f} to {max(seen[-1]):.0f}")
PYTHON

venv/bin/python fit.py 2>/dev/null | tee found
diff seen found
