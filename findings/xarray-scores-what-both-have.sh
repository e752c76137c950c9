#!/usr/bin/env bash
# xarray takes the error of a forecast over those places only that forecast and truth name by equal numbers.
#
# Seen with: xarray 2026.9.0, numpy 2.4.6, CPython 3.11.
#
# Arithmetic first joins both sides by their coordinates, and drops what only one side has. Coordinates are compared as
# numbers: latitudes 0.0, 0.1, 0.2, ... in 32 bits, as models and many files have them, equal those in 64 bits only at
# every half degree. The difference then has a fifth of the places, its mean is a plausible score, and nothing is said.
# Times of another calendar or an hour's shift do the same. set_options(arithmetic_join="exact") raises.
#
# Output seen:
#   places: 100 and 100, mean error 8.02
#   xarray: 20 places, mean error 0.10
#   arithmetic_join="exact": AlignmentError
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check xarray==2026.9.0 numpy==2.4.6

cat > score.py <<'PYTHON'
import numpy as np
import xarray

latitude = np.arange(0, 10, 0.1).round(1)
is_bad = latitude * 2 % 1 != 0
truth = xarray.DataArray(np.zeros(latitude.size), {"latitude": latitude}, ["latitude"])
forecast = xarray.DataArray(np.where(is_bad, 10.0, 0.1), {"latitude": latitude.astype(np.float32)}, ["latitude"])


def error():
    return np.abs(forecast - truth)


print(f"places: {forecast.size} and {truth.size}, mean error {np.abs(forecast.values - truth.values).mean():.2f}")
print(f"xarray: {error().size} places, mean error {float(error().mean()):.2f}")
with xarray.set_options(arithmetic_join="exact"):
    try:
        error()
    except ValueError as raised:
        print('arithmetic_join="exact":', type(raised).__name__)
PYTHON

venv/bin/python score.py | tee found
diff seen found
