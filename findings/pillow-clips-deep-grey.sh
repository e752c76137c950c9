#!/usr/bin/env bash
# Pillow scales a color PNG of 16 bits to 8 bits, but clips a gray one at 255.
#
# Seen with: Pillow 13.0.0, numpy 2.4.6, CPython 3.11.
#
# A color PNG of 16 bits is opened as RGB, with the high byte of each value. A gray one keeps its 16 bits, in mode I;16,
# and convert("L") or convert("RGB") makes every value above 255 white, without a word: a medical or depth image becomes
# one white area. An image of floats from 0 to 1 becomes black in the same way.
#
# Output seen:
#   color, 30000 of 65535: opened as RGB, converted to 117
#   gray, 30000 of 65535: opened as I;16, converted to 255
#   gray, 0 to 65535 in 16 steps: [0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255]
#   floats, 0.0 to 1.0 in 16 steps: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pillow==13.0.0 numpy==2.4.6

cat > convert.py <<'PYTHON'
import io
import struct
import zlib

import numpy as np
from PIL import Image


def png(values, channels):
    """An image of one row of 16 bits."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    row = b"\0" + b"".join(struct.pack(">H", value) * channels for value in values)
    header = struct.pack(">IIBBBBB", len(values), 1, 16, 2 if channels == 3 else 0, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(row)) + chunk(b"IEND", b"")
    return Image.open(io.BytesIO(b"\x89PNG\r\n\x1a\n" + parts))


def gray(image):
    return np.asarray(image.convert("RGB"))[0, :, 0].tolist()


for what, channels in (("color", 3), ("gray", 1)):
    image = png([30000], channels)
    print(f"{what}, 30000 of 65535: opened as {image.mode}, converted to {gray(image)[0]}")
print("gray, 0 to 65535 in 16 steps:", gray(png(range(0, 65536, 4369), 1)))
floats = np.linspace(0, 1, 16, dtype=np.float32)[None]
print("floats, 0.0 to 1.0 in 16 steps:", gray(Image.fromarray(floats)))
PYTHON

venv/bin/python convert.py | tee found
diff seen found
