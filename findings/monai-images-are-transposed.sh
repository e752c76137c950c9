#!/usr/bin/env bash
# MONAI's LoadImage gives a PNG or JPEG as (width, height); Pillow, OpenCV and torchvision give (height, width).
#
# Seen with: monai 1.6.1, torch 2.15.0, Pillow 13.0.0, numpy 2.4.6, CPython 3.11. Installs PyTorch with CUDA.
#
# Its reader swaps the axes so that flat images are like volumes, whose first axis is x. Inside MONAI, image and mask
# are swapped alike. A model that was trained so, and is served images that another library decoded, sees them mirrored
# at the diagonal; so do boxes and points of x and y, and weights that were pretrained on upright images. Square images
# show no wrong shape. reader=PILReader(reverse_indexing=False) keeps rows and columns.
#
# Output seen:
#   PNG of width 4, height 3: Pillow and NumPy (3, 4), LoadImage (4, 3)
#   the top right corner, white, is at Pillow and NumPy (0, 3), LoadImage (3, 0)
#   reverse_indexing=False: (3, 4)
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check monai==1.6.1 torch==2.15.0 pillow==13.0.0 numpy==2.4.6

cat > load.py <<'PYTHON'
import warnings

import numpy as np
from monai.data import PILReader
from monai.transforms import LoadImage
from PIL import Image

warnings.simplefilter("error", UserWarning)
pixels = np.zeros((3, 4), dtype=np.uint8)
pixels[0, 3] = 255
Image.fromarray(pixels).save("image.png")
by_pillow = np.asarray(Image.open("image.png"))
by_monai = LoadImage()("image.png").numpy()
print(f"PNG of width 4, height 3: Pillow and NumPy {by_pillow.shape}, LoadImage {by_monai.shape}")


def corner(image):
    return tuple(np.argwhere(image == 255)[0].tolist())


print(f"the top right corner, white, is at Pillow and NumPy {corner(by_pillow)}, LoadImage {corner(by_monai)}")
upright = LoadImage(reader=PILReader(reverse_indexing=False))("image.png")
print("reverse_indexing=False:", tuple(upright.shape))
PYTHON

venv/bin/python load.py 2>/dev/null | tee found
diff seen found
