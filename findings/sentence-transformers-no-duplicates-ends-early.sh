#!/usr/bin/env bash
# sentence-transformers' sampler without duplicates makes more batches than its length says, and training ends there.
#
# Seen with: sentence-transformers 6.2.0, datasets 5.2.0, torch 2.15.0, CPython 3.11. Installs PyTorch with CUDA.
#
# batch_sampler="no_duplicates" keeps equal texts out of a batch, as in-batch negatives need. Where texts repeat, as
# labels or answers do, batches are smaller than asked and more in number; but len() is rows divided by batch size, and
# the trainer takes so many steps for an epoch. The rest of the rows is never seen, and the epoch counts as whole. With
# drop_last, there is no batch at all.
#
# Output seen:
#   400 rows of 20 different answers, batch size 32
#   len(): 13 batches; found: 20 batches of 20 rows
#   rows of the first 13 batches: 260
#   drop_last: len() 12, batches 0
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check sentence-transformers==6.2.0 datasets==5.2.0 torch==2.15.0

cat > sample.py <<'PYTHON'
import torch
from datasets import Dataset
from sentence_transformers.base.sampler import NoDuplicatesBatchSampler

ROWS, ANSWERS, SIZE = 400, 20, 32
questions = [f"question {number}" for number in range(ROWS)]
rows = Dataset.from_dict({"anchor": questions, "positive": [f"answer {number % ANSWERS}" for number in range(ROWS)]})


def sampler(drop_last):
    random = torch.Generator().manual_seed(0)
    return NoDuplicatesBatchSampler(rows, batch_size=SIZE, drop_last=drop_last, generator=random)


print(f"{ROWS} rows of {ANSWERS} different answers, batch size {SIZE}")
whole = sampler(drop_last=False)
batches = list(whole)
sizes = ", ".join(str(size) for size in sorted({len(batch) for batch in batches}))
print(f"len(): {len(whole)} batches; found: {len(batches)} batches of {sizes} rows")
print(f"rows of the first {len(whole)} batches:", sum(len(batch) for batch in batches[: len(whole)]))
dropping = sampler(drop_last=True)
print(f"drop_last: len() {len(dropping)}, batches {len(list(dropping))}")
PYTHON

HF_HOME="$folder/hub" venv/bin/python sample.py 2>/dev/null | tee found
diff seen found
