#!/usr/bin/env bash
# The same polygon of 10 by 10 covers 100 pixels for pycocotools, and 121 for Pillow, OpenCV and scikit-image.
#
# Seen with: pycocotools 2.0.11, pillow 13.0.0, opencv-python-headless 5.0.0.93, scikit-image 0.26.0, numpy 2.4.6,
# CPython 3.11.
#
# Annotations of objects are polygons, and each tool draws them by its own rule: pycocotools takes corners for places
# between pixels, the others for pixels, which belong to the object. A mask that a model has learned from one and that
# is scored by another overlaps an object of 10 pixels by 0.83 at best, and one of 4 pixels by 0.64: it does not count
# as found at the higher thresholds. A polygon inside another does not cut a hole in COCO: both are filled.
#
# Output seen:
#   40 by 40, pixels (overlap): pycocotools 1600, pillow 1681 (0.95), opencv 1681 (0.95), scikit_image 1681 (0.95)
#   10 by 10, pixels (overlap): pycocotools 100, pillow 121 (0.83), opencv 121 (0.83), scikit_image 121 (0.83)
#   4 by 4, pixels (overlap): pycocotools 16, pillow 25 (0.64), opencv 25 (0.64), scikit_image 25 (0.64)
#   a square of 8 inside one of 20: 400 of 400 pixels
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  pycocotools==2.0.11 pillow==13.0.0 opencv-python-headless==5.0.0.93 scikit-image==0.26.0 numpy==2.4.6

cat > polygons.py <<'PYTHON'
import cv2
import numpy as np
from PIL import Image, ImageDraw
from pycocotools import mask
from skimage import draw

SIDE = 64


def square(side, start=8):
    end = start + side
    return [start, start, end, start, end, end, start, end]


def by_pycocotools(*polygons):
    return mask.decode(mask.merge(mask.frPyObjects(list(polygons), SIDE, SIDE)))


def by_pillow(polygon):
    image = Image.new("L", (SIDE, SIDE))
    ImageDraw.Draw(image).polygon(polygon, fill=1)
    return np.array(image)


def by_opencv(polygon):
    return cv2.fillPoly(np.zeros((SIDE, SIDE), np.uint8), [np.reshape(polygon, (-1, 2))], 1)


def by_scikit_image(polygon):
    return draw.polygon2mask((SIDE, SIDE), np.reshape(polygon, (-1, 2))[:, ::-1]).astype(np.uint8)


def overlap(one, other):
    return (one & other).sum() / (one | other).sum()


for side in (40, 10, 4):
    coco = by_pycocotools(square(side))
    found = [f"pycocotools {coco.sum()}"]
    for draws in (by_pillow, by_opencv, by_scikit_image):
        other = draws(square(side))
        found.append(f"{draws.__name__.removeprefix('by_')} {other.sum()} ({overlap(coco, other):.2f})")
    print(f"{side} by {side}, pixels (overlap): {', '.join(found)}")
print("a square of 8 inside one of 20:", by_pycocotools(square(20), square(8, 14)).sum(), "of 400 pixels")
PYTHON

venv/bin/python polygons.py | tee found
diff seen found
