#!/usr/bin/env bash
# A DataLoader with drop_last drops the rest of each worker: 100 rows in batches of 32 by 4 workers are no batch.
#
# Seen with: torch 2.15.0, CPython 3.11. Installs PyTorch with CUDA.
#
# Each worker of an IterableDataset makes batches of its own share and drops what is left of it, so up to workers *
# (batch_size - 1) rows are lost in each epoch, always the same ones unless they are shuffled, and all of them where a
# share is smaller than a batch. The loop then has no step, and no error. A Dataset with an index loses at most 31 rows
# here.
#
# Output seen:
#   0 workers: 96 rows streamed, 96 rows by index
#   2 workers: 64 rows streamed, 96 rows by index
#   4 workers: 0 rows streamed, 96 rows by index
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check torch==2.15.0 numpy==2.4.6

cat > drop.py <<'PYTHON'
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

ROWS = 100


class Numbers(IterableDataset):
    def __iter__(self):
        worker = get_worker_info()
        return iter(range(worker.id, ROWS, worker.num_workers) if worker else range(ROWS))


for workers in (0, 2, 4):
    options = {"batch_size": 32, "drop_last": True, "num_workers": workers}
    streamed = sum(map(len, DataLoader(Numbers(), **options)))
    indexed = sum(map(len, DataLoader(range(ROWS), **options)))
    print(f"{workers} workers: {streamed} rows streamed, {indexed} rows by index")
PYTHON

venv/bin/python drop.py 2>/dev/null | tee found
diff seen found
