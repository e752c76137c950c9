#!/usr/bin/env bash
# scikit-learn reads 1 as one row and 1.0 as all rows, and JSON, YAML and JavaScript write 1.0 as 1.
#
# Seen with: scikit-learn 1.9.1, numpy 2.4.6, CPython 3.11.
#
# A parameter that is a share if it is a float, and a number if it is an integer, turns over at 1. max_df=1.0 keeps
# words of up to all documents; max_df=1, which is how a browser or a Go program writes it, only words of a single one:
# the vocabulary is what no two texts share, and the model learns nothing, without an error. max_features of a tree is
# all columns or one. A whole number as the end of a range of floats does the same.
#
# Output seen:
#   max_df 1.0: ['cat', 'dog', 'ran', 'sat', 'sun']
#   max_df 1: ['dog', 'ran', 'sat', 'sun']
#   max_features 1.0: 5 of 5 columns for each split
#   max_features 1: 1 of 5 columns for each split
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  scikit-learn==1.9.1 numpy==2.4.6

cat > ones.py <<'PYTHON'
import json

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.tree import DecisionTreeClassifier

texts = ["cat sat", "cat ran", "cat dog", "cat sun"]
for written in ("1.0", "1"):
    print(f"max_df {written}:", sorted(CountVectorizer(max_df=json.loads(written)).fit(texts).vocabulary_))
rows = np.random.default_rng(0).normal(size=(100, 5))
for written in ("1.0", "1"):
    tree = DecisionTreeClassifier(max_features=json.loads(written)).fit(rows, rows[:, 0] > 0)
    print(f"max_features {written}: {tree.max_features_} of 5 columns for each split")
PYTHON

venv/bin/python ones.py | tee found
diff seen found
