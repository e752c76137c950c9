#!/usr/bin/env bash
# SMOTE makes rows that have none of the categories of a one-hot column, or two of them, and only in the rare class.
#
# Seen with: imbalanced-learn 0.14.2, scikit-learn 1.9.1, pandas 3.1.1, numpy 2.4.6, CPython 3.11.
#
# A new row lies between two rows of the rare class. For columns of whole numbers the values are cast back to them,
# which cuts: between 0 and 1 is always 0, so a row between two categories has none, and ages become lower. For columns
# of bool, everything above 0 is true, and such a row has both. No real row looks like this, so "no category" becomes a
# sure sign of the rare class in training, and scores on rows that are split off afterwards are too good. get_dummies
# gives bool, OneHotEncoder floats. SMOTENC with the column before its encoding keeps one category.
#
# Output seen:
#   int: 800 new rows, categories of a row: 67% have 0, 33% have 1
#   bool: 800 new rows, categories of a row: 33% have 1, 67% have 2
#   mean age of the rare class: new rows 38.1, real rows 38.5
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  imbalanced-learn==0.14.2 scikit-learn==1.9.1 pandas==3.1.1 numpy==2.4.6

cat > smote.py <<'PYTHON'
import numpy as np
import pandas as pd
from imblearn.over_sampling import SMOTE

COMMON, RARE = 900, 100
random = np.random.default_rng(0)
rows = COMMON + RARE
one_hot = pd.get_dummies(pd.Series(random.choice(["north", "east", "south", "west"], rows)))
label = np.repeat([0, 1], [COMMON, RARE])
numbers = pd.DataFrame({"height": random.normal(size=rows), "age": random.integers(20, 60, rows)})
for kind in (int, bool):
    table = pd.concat([one_hot.astype(kind), numbers], axis=1)
    more, _ = SMOTE(random_state=0).fit_resample(table, label)
    new = more.iloc[rows:]
    counts = new[one_hot.columns].sum(axis=1).value_counts(normalize=True).sort_index()
    shares = ", ".join(f"{share:.0%} have {count}" for count, share in counts.items())
    print(f"{kind.__name__}: {len(new)} new rows, categories of a row: {shares}")
made, real = new["age"].mean(), numbers["age"][label == 1].mean()
print(f"mean age of the rare class: new rows {made:.1f}, real rows {real:.1f}")
PYTHON

venv/bin/python smote.py | tee found
diff seen found
