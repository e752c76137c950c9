#!/usr/bin/env bash
# LightGBM gives a category that it has not seen the very prediction of one that it has, not a middle one.
#
# Seen with: lightgbm 4.7.0, pandas 3.1.1, numpy 2.4.6, scikit-learn 1.9.1, CPython 3.11.
#
# An unseen category is taken for a missing value, and where training had none, it goes to the same side of each split
# as the categories that are not listed there. Which category that is depends on the data; the share of all rows plays
# no part. Categories are compared with their type: 1, 2 and 3 in training and "1", "2" and "3" later, as another file
# format or reader gives them, are all unseen, and all rows get one prediction. There is no warning in either case.
#
# Output seen:
#   share of ones in training: 0.523
#   predictions of a, b, c: [0.202 0.46  0.908]
#   unseen z: [0.46]
#   trained on 1, 2, 3, asked for 1, 2, 3: [0.202 0.46  0.908]
#   the same model, asked for "1", "2", "3": [0.46 0.46 0.46]
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check lightgbm==4.7.0 pandas==3.1.1 numpy==2.4.6 scikit-learn==1.9.1

cat > predict.py <<'PYTHON'
import lightgbm
import numpy as np
import pandas as pd

SETTINGS = {"objective": "binary", "verbosity": -1, "num_threads": 1, "min_data_per_group": 1, "cat_smooth": 1}
is_one = (np.random.default_rng(0).random(300) < np.tile([0.2, 0.5, 0.95], 100)).astype(int)


def column(values):
    return pd.DataFrame({"category": pd.Categorical(values)})


def trained(categories):
    return lightgbm.train(SETTINGS | {"min_data_in_leaf": 5}, lightgbm.Dataset(column(categories * 100), is_one), 50)


letters, numbers = trained(["a", "b", "c"]), trained([1, 2, 3])
print("share of ones in training:", is_one.mean().round(3))
print("predictions of a, b, c:", letters.predict(column(["a", "b", "c"])).round(3))
print("unseen z:", letters.predict(column(["z"])).round(3))
print("trained on 1, 2, 3, asked for 1, 2, 3:", numbers.predict(column([1, 2, 3])).round(3))
print('the same model, asked for "1", "2", "3":', numbers.predict(column(["1", "2", "3"])).round(3))
PYTHON

venv/bin/python predict.py | tee found
diff seen found
