#!/usr/bin/env bash
# scikit-learn shifts all columns of a svmlight file by one if no row of it uses column 0.
#
# Seen with: scikit-learn 1.9.1, numpy 2.4.6, CPython 3.11.
#
# The format (LIBSVM's) does not say whether columns are counted from 0 or 1. load_svmlight_file guesses for each file
# by itself: where index 0 does not occur, it counts from 1. Of a training and a test file that one program wrote from
# 0, the smaller one may lack the column, and its features then are those of their neighbors, with the same shape where
# n_features is given. load_svmlight_files decides for all files together; zero_based says it.
#
# Output seen:
#   train: [[5, 0, 7, 0], [0, 3, 0, 0]]
#   test: [[0, 7, 0, 0], [3, 0, 0, 0]]
#   test, read with train: [[0, 0, 7, 0], [0, 3, 0, 0]]
#   test, zero_based=True: [[0, 0, 7, 0], [0, 3, 0, 0]]
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check scikit-learn==1.9.1 numpy==2.4.6 scipy==1.17.1

cat > load.py <<'PYTHON'
from pathlib import Path

from sklearn.datasets import load_svmlight_file, load_svmlight_files

Path("train").write_text("1 0:5 2:7\n0 1:3\n")
Path("test").write_text("1 2:7\n0 1:3\n")


def rows(table):
    return table.toarray().astype(int).tolist()


print("train:", rows(load_svmlight_file("train", n_features=4)[0]))
print("test:", rows(load_svmlight_file("test", n_features=4)[0]))
together = load_svmlight_files(["train", "test"], n_features=4)
print("test, read with train:", rows(together[2]))
print("test, zero_based=True:", rows(load_svmlight_file("test", n_features=4, zero_based=True)[0]))
PYTHON

venv/bin/python load.py | tee found
diff seen found
