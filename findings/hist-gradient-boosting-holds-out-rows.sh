#!/usr/bin/env bash
# HistGradientBoosting trains on all rows of 10,000, and on 9,000 of 10,001, and then differs from fit to fit.
#
# Seen with: scikit-learn 1.9.1, numpy 2.4.6, CPython 3.11.
#
# early_stopping="auto" begins above 10,000 rows: a tenth of them, drawn at random, is held out, and training ends once
# their loss stops falling. So a table that grew by a row is trained otherwise, on fewer rows and with fewer trees. Rows
# of one patient or one hour stand on both sides of that random cut, and without random_state no two fits are equal, as
# they are with fewer rows.
#
# Output seen:
#   10000 rows: trees 100 and 100, equal: True
#   10001 rows: fewer trees: True, equal: False
#   10001 rows, early_stopping=False: trees 100 and 100, equal: True
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check scikit-learn==1.9.1 numpy==2.4.6

cat > fit.py <<'PYTHON'
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

random = np.random.default_rng(0)
rows = random.normal(size=(10_001, 3))
target = rows[:, 0] + random.normal(size=len(rows))


def fits(count, **options):
    models = [HistGradientBoostingRegressor(**options).fit(rows[:count], target[:count]) for _ in range(2)]
    first, second = (model.predict(rows) for model in models)
    return [model.n_iter_ for model in models], np.array_equal(first, second)


for count, options in ((10_000, {}), (10_001, {}), (10_001, {"early_stopping": False})):
    trees, equal = fits(count, **options)
    what = f"{count} rows" + "".join(f", {name}={value}" for name, value in options.items())
    how_many = f"fewer trees: {max(trees) < 100}" if max(trees) < 100 else "trees {} and {}".format(*trees)
    print(f"{what}: {how_many}, equal: {equal}")
PYTHON

venv/bin/python fit.py 2>/dev/null | tee found
diff seen found
