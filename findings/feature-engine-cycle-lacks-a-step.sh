#!/usr/bin/env bash
# feature-engine's cyclical features of the hours 0 to 23 make hour 23 equal to hour 0, and Sunday to Monday.
#
# Seen with: feature-engine 1.9.4, pandas 3.1.1, scikit-learn 1.9.1, numpy 2.4.6, CPython 3.11.
#
# Sine and cosine are to put the last hour next to the first. CyclicalFeatures takes the largest number of the training
# rows for the length of the cycle, which is right for months and days that begin with 1. Counted from 0, as hours, and
# as pandas' dayofweek, the last step and the first get the same features and no model can tell them apart; the others
# are shifted a little. If training rows end in September, a year has nine months. max_values sets the length.
#
# Output seen:
#   hours 0 to 23: 0 [0.0, 1.0], 12 [-0.14, -0.99], 23 [0.0, 1.0]
#   hours 0 to 23, max_values 24: 0 [0.0, 1.0], 12 [0.0, -1.0], 23 [-0.26, 0.97]
#   Monday to Sunday: 0 [0.0, 1.0], 6 [0.0, 1.0]
#   fitted on months 1 to 9: 1 [0.64, 0.77], 10 [0.64, 0.77]
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  feature-engine==1.9.4 pandas==3.1.1 scikit-learn==1.9.1 numpy==2.4.6

cat > hours.py <<'PYTHON'
import pandas as pd
from feature_engine.creation import CyclicalFeatures


def say(what: str, fitted: CyclicalFeatures, rows: pd.DataFrame) -> None:
    features = (fitted.transform(rows).iloc[:, 1:].round(2) + 0.0).to_numpy().tolist()
    print(f"{what}:", ", ".join(f"{number} {pair}" for number, pair in zip(rows.iloc[:, 0], features, strict=True)))


hours = pd.DataFrame({"hour": range(24)})
some = hours.iloc[[0, 12, 23]]
say("hours 0 to 23", CyclicalFeatures().fit(hours), some)
say("hours 0 to 23, max_values 24", CyclicalFeatures(max_values={"hour": 24}).fit(hours), some)
days = pd.DataFrame({"weekday": pd.date_range("2024-01-01", periods=7).dayofweek})
say("Monday to Sunday", CyclicalFeatures().fit(days), days.iloc[[0, 6]])
months = pd.DataFrame({"month": range(1, 13)})
say("fitted on months 1 to 9", CyclicalFeatures().fit(months.iloc[:9]), months.iloc[[0, 9]])
PYTHON

venv/bin/python hours.py | tee found
diff seen found
