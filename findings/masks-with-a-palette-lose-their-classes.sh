#!/usr/bin/env bash
# A mask of classes in a PNG with a palette is read as colors, or as their brightness, by most readers of images.
#
# Seen with: pillow 13.0.0, opencv-python-headless 5.0.0.93, imageio 2.38.1, scikit-image 0.26.0, numpy 2.4.6, CPython
# 3.11.
#
# Masks of PASCAL VOC, Cityscapes' previews and many tools have a number of a class for each pixel, and a palette so
# that viewers show colors. Only Pillow without convert() gives the numbers. OpenCV has no way to get them: in gray,
# classes 1, 2 and 15 are 38, 75 and 147, which are classes to a network with 256 of them, and two classes whose colors
# are equally bright become one. imageio and scikit-image give three channels, of which the first looks like a mask,
# too.
#
# Output seen:
#   classes: [  0   1   2  15 255]
#   Pillow: shape (2, 3), values [  0   1   2  15 255]
#   Pillow, convert("L"): shape (2, 3), values [  0  38  75 147 220]
#   OpenCV, IMREAD_GRAYSCALE: shape (2, 3), values [  0  38  75 147 220]
#   OpenCV, IMREAD_UNCHANGED: shape (2, 3, 3), values [  0 128 192 224]
#   imageio: shape (2, 3, 3), values [  0 128 192 224]
#   scikit-image: shape (2, 3, 3), values [  0 128 192 224]
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  pillow==13.0.0 opencv-python-headless==5.0.0.93 imageio==2.38.1 scikit-image==0.26.0 numpy==2.4.6

cat > masks.py <<'PYTHON'
import cv2
import imageio.v3 as imageio
import numpy as np
from PIL import Image
from skimage import io

COLORS = {0: (0, 0, 0), 1: (128, 0, 0), 2: (0, 128, 0), 15: (192, 128, 128), 255: (224, 224, 192)}
numbers = np.array([[0, 1, 2], [15, 255, 0]], np.uint8)
palette = np.zeros((256, 3), np.uint8)
for number, color in COLORS.items():
    palette[number] = color
written = Image.frombytes("P", numbers.shape[::-1], numbers.tobytes())
written.putpalette(palette.tobytes())
written.save("mask.png")
print("classes:", np.unique(numbers))
readers = {
    "Pillow": lambda file: np.array(Image.open(file)),
    'Pillow, convert("L")': lambda file: np.array(Image.open(file).convert("L")),
    "OpenCV, IMREAD_GRAYSCALE": lambda file: cv2.imread(file, cv2.IMREAD_GRAYSCALE),
    "OpenCV, IMREAD_UNCHANGED": lambda file: cv2.imread(file, cv2.IMREAD_UNCHANGED),
    "imageio": imageio.imread,
    "scikit-image": io.imread,
}
for name, read in readers.items():
    found = read("mask.png")
    print(f"{name}: shape {found.shape}, values {np.unique(found)}")
PYTHON

venv/bin/python masks.py | tee found
diff seen found
