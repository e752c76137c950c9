#!/usr/bin/env bash
# faiss fills up a short answer with -1, which is the last row of whatever list it is looked up in.
#
# Seen with: faiss-cpu 1.15.1, numpy 2.4.6, CPython 3.11.
#
# An index of clusters, as IndexIVFFlat is, searches one cluster unless nprobe says otherwise. Where it holds fewer
# vectors than asked for, although the index has plenty, the rest of the answer is -1, without an error. texts[-1] in
# Python and an array indexed so in NumPy give the last row: the same text, which has nothing to do with the query, is
# among the neighbors of many queries, as a hard negative or as context for a language model. Distances there are
# 3.4e38.
#
# Output seen:
#   nprobe 1: any -1: True, queries with text 999 among 20 neighbors: 96
#   nprobe 100: any -1: False, queries with text 999 among 20 neighbors: 3
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check faiss-cpu==1.15.1 numpy==2.4.6

cat > find.py <<'PYTHON'
import faiss
import numpy as np

ROWS, ASKED = 1000, 20
vectors = np.random.default_rng(0).normal(size=(ROWS, 8)).astype(np.float32)
texts = np.array([f"text {number}" for number in range(ROWS)])
index = faiss.IndexIVFFlat(faiss.IndexFlatL2(8), 8, 100)
index.train(vectors)
index.add(vectors)
for probed in (1, 100):
    index.nprobe = probed
    found = index.search(vectors[:100], ASKED)[1]
    last = (texts[found] == texts[-1]).any(axis=1).sum()
    print(f"nprobe {probed}: any -1: {(found < 0).any()}, queries with {texts[-1]} among {ASKED} neighbors: {last}")
PYTHON

venv/bin/python find.py 2>/dev/null | tee found
diff seen found
