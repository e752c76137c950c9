#!/usr/bin/env bash
# scikit-image reads a TIFF stack of 3 or 4 images as one image of 3 or 4 channels; stacks of 2 or 5 stay as they are.
#
# Seen with: scikit-image 0.26.0, tifffile 2026.3.3, numpy 2.4.6, CPython 3.11.
#
# imread moves the first axis to the end where it has 3 or 4 entries and the last one has not, since these could be
# colors; that the file calls itself gray does not matter. A folder of recordings with 2 to 5 slices or time steps comes
# with two orders of axes: a loop over the first axis gives slices in some files and rows of pixels in the others, and a
# maximum over it is no projection. tifffile, by which it reads, keeps the order.
#
# Output seen:
#   2 images: tifffile (2, 64, 80), skimage (2, 64, 80), maximum over the first axis (64, 80)
#   3 images: tifffile (3, 64, 80), skimage (64, 80, 3), maximum over the first axis (80, 3)
#   4 images: tifffile (4, 64, 80), skimage (64, 80, 4), maximum over the first axis (80, 4)
#   5 images: tifffile (5, 64, 80), skimage (5, 64, 80), maximum over the first axis (64, 80)
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check scikit-image==0.26.0 tifffile==2026.3.3 numpy==2.4.6

cat > stacks.py <<'PYTHON'
import numpy as np
import tifffile
from skimage.io import imread

for count in (2, 3, 4, 5):
    tifffile.imwrite("stack.tif", np.zeros((count, 64, 80), np.uint16), photometric="minisblack")
    stack = imread("stack.tif")
    print(f"{count} images: tifffile {tifffile.imread('stack.tif').shape}, skimage {stack.shape}", end="")
    print(f", maximum over the first axis {stack.max(axis=0).shape}")
PYTHON

venv/bin/python stacks.py | tee found
diff seen found
