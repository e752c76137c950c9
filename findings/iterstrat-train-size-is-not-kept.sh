#!/usr/bin/env bash
# iterative-stratification's shuffle split divides all rows in the ratio of train_size to test_size.
#
# Seen with: iterative-stratification 0.1.9, scikit-learn 1.9.1, numpy 2.4.6, CPython 3.11.
#
# MultilabelStratifiedShuffleSplit takes the arguments of scikit-learn's ShuffleSplit, in which sizes of 0.1 and 0.1
# leave 80 of 100 rows out. Here the same two arguments give two halves. Numbers of rows are taken for a ratio, too.
#
# Output seen:
#   test_size=0.1, train_size=0.1: 10 and 10 rows by ShuffleSplit, 50 and 50 by MultilabelStratifiedShuffleSplit
#   test_size=10, train_size=50: 50 and 10 rows by ShuffleSplit, 83 and 17 by MultilabelStratifiedShuffleSplit
#   test_size=0.2: 80 and 20 rows by ShuffleSplit, 80 and 20 by MultilabelStratifiedShuffleSplit
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check iterative-stratification==0.1.9 \
  scikit-learn==1.9.1 numpy==2.4.6

cat > split.py <<'PYTHON'
import numpy as np
from iterstrat.ml_stratifiers import MultilabelStratifiedShuffleSplit
from sklearn.model_selection import ShuffleSplit

labels = (np.random.default_rng(0).random((100, 3)) < 0.3).astype(int)


def sizes(splitter):
    train, test = next(splitter.split(labels, labels))
    return f"{len(train)} and {len(test)}"


for given in ({"test_size": 0.1, "train_size": 0.1}, {"test_size": 10, "train_size": 50}, {"test_size": 0.2}):
    what = ", ".join(f"{name}={value}" for name, value in given.items())
    plain = sizes(ShuffleSplit(n_splits=1, random_state=0, **given))
    stratified = sizes(MultilabelStratifiedShuffleSplit(n_splits=1, random_state=0, **given))
    print(f"{what}: {plain} rows by ShuffleSplit, {stratified} by MultilabelStratifiedShuffleSplit")
PYTHON

venv/bin/python split.py | tee found
diff seen found
