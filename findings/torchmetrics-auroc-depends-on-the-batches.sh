#!/usr/bin/env bash
# torchmetrics' AUROC of logits depends on how the rows are split into batches.
#
# Seen with: torchmetrics 1.9.0, torch 2.15.0, scikit-learn 1.9.1, CPython 3.11. Installs PyTorch with CUDA.
#
# A binary metric takes scores between 0 and 1 for probabilities and passes others through a sigmoid. It decides so for
# each update: logits of a batch that happen to lie between 0 and 1 stay as they are, and are then ranked among
# sigmoids of the other batches. The smaller the batches, the more of them there are. Sigmoids of float32 are also equal
# above 17, so that certain predictions have no order any more.
#
# Output seen:
#   scikit-learn: AUROC 0.937, accuracy 0.675
#   batches of 400: AUROC 0.937, accuracy 0.675
#   batches of 8: AUROC 0.932, accuracy 0.675
#   batches of 4: AUROC 0.910, accuracy 0.695
#   batches of 1: AUROC 0.891, accuracy 0.860
#   logits 18 to 40, scikit-learn: AUROC 0.667
#   logits 18 to 40, torchmetrics: AUROC 0.500
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check torchmetrics==1.9.0 torch==2.15.0 scikit-learn==1.9.1

cat > score.py <<'PYTHON'
import torch
from sklearn.metrics import accuracy_score, roc_auc_score
from torchmetrics.classification import BinaryAccuracy, BinaryAUROC

random = torch.Generator().manual_seed(0)
logits = torch.randn(400, generator=random) * 0.7 + 0.5
labels = (logits + torch.randn(400, generator=random) * 0.3 > 0.6).int()
accuracy = accuracy_score(labels, logits > 0)
print(f"scikit-learn: AUROC {roc_auc_score(labels, logits):.3f}, accuracy {accuracy:.3f}")
for size in (400, 8, 4, 1):
    auroc, accuracy = BinaryAUROC(), BinaryAccuracy()
    for start in range(0, len(logits), size):
        auroc.update(logits[start : start + size], labels[start : start + size])
        accuracy.update(logits[start : start + size], labels[start : start + size])
    print(f"batches of {size}: AUROC {auroc.compute():.3f}, accuracy {accuracy.compute():.3f}")
certain, labels = torch.tensor([18.0, 19.0, 20.0, 21.0, 30.0, 40.0]), torch.tensor([0, 1, 0, 1, 0, 1])
print(f"logits 18 to 40, scikit-learn: AUROC {roc_auc_score(labels, certain):.3f}")
print(f"logits 18 to 40, torchmetrics: AUROC {BinaryAUROC()(certain, labels):.3f}")
PYTHON

venv/bin/python score.py 2>/dev/null | tee found
diff seen found
