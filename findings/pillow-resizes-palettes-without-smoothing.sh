#!/usr/bin/env bash
# Pillow resizes an image with a palette, or of black and white, by the nearest pixel, whatever filter is asked for.
#
# Seen with: pillow 13.0.0, numpy 2.4.6, CPython 3.11.
#
# Numbers of colors cannot be averaged, so resize and thumbnail take the nearest pixel for modes P and 1, and do not say
# that they left BILINEAR or LANCZOS out. GIFs, small PNGs and scans of pages have these modes. Lines of a scan vanish,
# and the network learns from jagged images beside smooth ones, or sees another kind when it is used. convert("RGB")
# must come before resize; after it, as is often written, it is too late.
#
# Output seen:
#   400 pixels: values 0 to 255, mean 230
#   mode RGB, resized to 80 by LANCZOS, then converted: values 213 to 239, mean 229
#   mode RGB, converted first: values 213 to 239, mean 229
#   mode P, resized to 80 by LANCZOS, then converted: values 255 to 255, mean 255
#   mode P, converted first: values 213 to 239, mean 229
#   mode 1, resized to 80 by LANCZOS, then converted: values 255 to 255, mean 255
#   mode 1, converted first: values 213 to 239, mean 229
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pillow==13.0.0 numpy==2.4.6

cat > resize.py <<'PYTHON'
import numpy as np
from PIL import Image, ImageDraw

page = Image.new("RGB", (400, 400), "white")
for x in range(5, 400, 10):
    ImageDraw.Draw(page).line([(x, 0), (x, 399)], fill="black")


def shown(image):
    values = np.array(image.convert("L"))
    return f"values {values.min()} to {values.max()}, mean {values.mean():.0f}"


print("400 pixels:", shown(page))
images = {"RGB": page, "P": page.quantize(2), "1": page.convert("1")}
for mode, image in images.items():
    small = image.resize((80, 80), Image.Resampling.LANCZOS)
    print(f"mode {mode}, resized to 80 by LANCZOS, then converted: {shown(small)}")
    small = image.convert("RGB").resize((80, 80), Image.Resampling.LANCZOS)
    print(f"mode {mode}, converted first: {shown(small)}")
PYTHON

venv/bin/python resize.py | tee found
diff seen found
