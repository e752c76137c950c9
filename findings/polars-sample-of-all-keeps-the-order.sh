#!/usr/bin/env bash
# polars' sample(fraction=1) does not shuffle, as the same call of pandas does.
#
# Seen with: polars 2.1.0, pandas 3.1.1, CPython 3.11.
#
# frame.sample(frac=1) is how rows are shuffled in pandas. polars returns all rows in their order, whatever the seed,
# and a smaller fraction in another order. So a set that is sorted by label stays sorted, and a split of it by position
# trains on some classes and tests on others. shuffle=True is needed.
#
# Output seen:
#   pandas, frac=1: cat dog cat dog cat dog dog cat cat dog
#   polars, fraction=1, seed=0: cat cat cat cat cat dog dog dog dog dog
#   polars, fraction=1, seed=1: cat cat cat cat cat dog dog dog dog dog
#   polars, fraction=0.5: in order: False
#   polars, shuffle=True: in order: False
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check polars==2.1.0 pandas==3.1.1 numpy==2.4.6

cat > shuffle.py <<'PYTHON'
import pandas as pd
import polars as pl

labels = ["cat"] * 5 + ["dog"] * 5
print("pandas, frac=1:", *pd.Series(labels).sample(frac=1, random_state=0))
frame = pl.DataFrame({"label": labels})
for seed in (0, 1):
    print(f"polars, fraction=1, seed={seed}:", *frame.sample(fraction=1, seed=seed)["label"])
numbers = pl.DataFrame({"row": range(10)}).sample(fraction=0.5, seed=1)["row"]
print("polars, fraction=0.5: in order:", numbers.is_sorted())
print("polars, shuffle=True: in order:", frame.sample(fraction=1, seed=0, shuffle=True)["label"].is_sorted())
PYTHON

venv/bin/python shuffle.py | tee found
diff seen found
