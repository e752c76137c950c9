#!/usr/bin/env bash
# simplejpeg and Pillow give opposite values for the same CMYK JPEG.
#
# Seen with: simplejpeg 1.9.0, Pillow 13.0.0, numpy 2.4.6, CPython 3.11.
#
# Programs for print write CMYK JPEGs with inverted values and a marker that says so, and Pillow does, too. Pillow turns
# them back when it reads; simplejpeg.decode_jpeg(…, "CMYK") gives them as stored. Where one decoder replaces the other,
# ink becomes paper. Decoded to RGB, both agree.
#
# Output seen:
#   written: [200 0 0 30]
#   Pillow, CMYK: [200 0 0 30]
#   simplejpeg, CMYK: [55 255 255 225]
#   Pillow, RGB: [49 225 225]
#   simplejpeg, RGB: [50 225 225]
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check simplejpeg==1.9.0 pillow==13.0.0 numpy==2.4.6

cat > decode.py <<'PYTHON'
import io

import numpy as np
import simplejpeg
from PIL import Image

ink = (200, 0, 0, 30)  # cyan, magenta, yellow, black
file = io.BytesIO()
Image.new("CMYK", (16, 16), ink).save(file, "JPEG", quality=95)
image = Image.open(file)
for what, pixels in (
    ("written", np.array([[ink]])),
    ("Pillow, CMYK", np.asarray(image)),
    ("simplejpeg, CMYK", simplejpeg.decode_jpeg(file.getvalue(), "CMYK")),
    ("Pillow, RGB", np.asarray(image.convert("RGB"))),
    ("simplejpeg, RGB", simplejpeg.decode_jpeg(file.getvalue(), "RGB")),
):
    print(f"{what}: [{' '.join(map(str, pixels[0, 0]))}]")
PYTHON

venv/bin/python decode.py | tee found
diff seen found
