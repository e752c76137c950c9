#!/usr/bin/env bash
# A thin line in a mask is 51 objects for SciPy, and one for OpenCV and scikit-image.
#
# Seen with: opencv-python-headless 5.0.0.93, scikit-image 0.26.0, scipy 1.17.1, numpy 2.4.6, CPython 3.11.
#
# Instances are made from a mask by numbering its connected parts. SciPy connects a pixel with four neighbors, others
# with eight, so that what touches by corners is cut: cracks, vessels and roads fall into pieces of a few pixels, each
# with its own box. Counts of cells differ by some percent, and so do scores by object if labels and predictions go
# through different libraries. structure=numpy.ones((3, 3)) makes SciPy count like the others.
#
# Output seen:
#   two squares that touch at a corner: scipy 2, OpenCV 1, scikit-image 1
#   a thin line: scipy 51, OpenCV 1, scikit-image 1
#   blobs above a threshold: scipy 831, OpenCV 661, scikit-image 661
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  opencv-python-headless==5.0.0.93 scikit-image==0.26.0 scipy==1.17.1 numpy==2.4.6

cat > objects.py <<'PYTHON'
import cv2
import numpy as np
import scipy.ndimage
import skimage.measure

COUNTS = {
    "scipy": lambda mask: scipy.ndimage.label(mask)[1],
    "OpenCV": lambda mask: cv2.connectedComponents(mask)[0] - 1,
    "scikit-image": lambda mask: skimage.measure.label(mask).max(),
}


def told(mask: np.ndarray) -> str:
    return ", ".join(f"{name} {count(mask)}" for name, count in COUNTS.items())


corners = np.kron(np.eye(2, dtype=np.uint8), np.ones((3, 3), np.uint8))
crack = cv2.line(np.zeros((100, 100), np.uint8), (5, 10), (90, 60), 1)
noise = scipy.ndimage.gaussian_filter(np.random.default_rng(0).normal(size=(256, 256)), 1)
print("two squares that touch at a corner:", told(corners))
print("a thin line:", told(crack))
print("blobs above a threshold:", told((noise > 0.1).astype(np.uint8)))
PYTHON

venv/bin/python objects.py | tee found
diff seen found
