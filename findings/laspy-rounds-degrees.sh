#!/usr/bin/env bash
# laspy writes longitudes and latitudes with two decimals, so that the points of a town lie in a few places.
#
# Seen with: laspy 2.7.0, numpy 2.4.6, CPython 3.11.
#
# LAS stores coordinates as whole numbers times a scale, and laspy's new files have a scale of 0.01: a centimeter where
# coordinates are meters, a kilometer where they are degrees. Nothing is said when x and y are set; the rounding shows
# at once in what x returns. header.scales must be set first, as to 1e-7.
#
# Output seen:
#   scales [0.01 0.01]: 1000 points in 121 places, the first 10.760000 59.900000 for 10.763696 59.901301
#   scales [1.e-07 1.e-07]: 1000 points in 1000 places, the first 10.763696 59.901301 for 10.763696 59.901301
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check laspy==2.7.0 numpy==2.4.6

cat > town.py <<'PYTHON'
import laspy
import numpy as np

random = np.random.default_rng(0)
longitudes, latitudes = 10.70 + random.random(1000) / 10, 59.90 + random.random(1000) / 10
for scale in (None, 1e-7):
    header = laspy.LasHeader()
    if scale:
        header.scales = np.array([scale, scale, 0.01])
    town = laspy.LasData(header)
    town.x, town.y, town.z = longitudes, latitudes, np.zeros(1000)
    town.write("town.las")
    read = laspy.read("town.las")
    places = len(np.unique(np.stack([read.x, read.y]), axis=1).T)
    print(f"scales {read.header.scales[:2]}: 1000 points in {places} places", end="")
    print(f", the first {read.x[0]:.6f} {read.y[0]:.6f} for {longitudes[0]:.6f} {latitudes[0]:.6f}")
PYTHON

venv/bin/python town.py | tee found
diff seen found
