#!/usr/bin/env bash
# polars numbers the classes of a Categorical column after those of all other such columns in memory.
#
# Seen with: polars 2.1.0, CPython 3.11.
#
# to_physical() of a Categorical gives the classes' numbers. The names of all columns are in one list, so the numbers
# begin where the last column's ended, and a name that another column has keeps its number there: a column of two
# classes has numbers such as 3 and 0, which depend on what else has been read. A model that is trained on them predicts
# other classes in a process that reads less. Codes of pandas, and of an Enum of polars, count the column's own
# categories.
#
# Output seen:
#   ['spam', 'ham', 'spam']: [0, 1, 0]
#   the same while there is a column of ['ham', 'Rome', 'Oslo']: [3, 0, 3]
#   the same as an Enum: [0, 1, 0]
#   pandas: [0, 1, 0]
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check polars==2.1.0 pandas==3.1.1

cat > categories.py <<'PYTHON'
import pandas as pd
import polars as pl

LABELS = ["spam", "ham", "spam"]


def numbers(values, kind):
    return pl.Series(values, dtype=kind).to_physical().to_list()


alone = numbers(LABELS, pl.Categorical)
print(f"{LABELS}:", alone)
cities = pl.Series(["ham", "Rome", "Oslo"], dtype=pl.Categorical)
print(f"the same while there is a column of {cities.to_list()}:", numbers(LABELS, pl.Categorical))
print("the same as an Enum:", numbers(LABELS, pl.Enum(["spam", "ham"])))
print("pandas:", pd.Series(LABELS).astype(pd.CategoricalDtype(["spam", "ham"])).cat.codes.tolist())
PYTHON

venv/bin/python categories.py | tee found
diff seen found
