#!/usr/bin/env bash
# scipy reads doubles of a MATLAB file as bytes if they are small whole numbers, and sums of them overflow.
#
# Seen with: scipy 1.17.1, numpy 2.4.6, CPython 3.11.
#
# MATLAB stores an array of class double in the smallest type that holds its values, as its format provides for. loadmat
# returns that type, not the array's class: whole numbers from 0 to 255 become uint8. In MATLAB they are doubles, and
# differences may be negative; here 10 - 20 is 246, and an array of the same program with one value of 256 or 0.5
# behaves otherwise. mat_dtype=True returns what MATLAB has. The script writes the file as MATLAB does, since savemat
# does not.
#
# Output seen:
#   {}: uint8, x [10, 200, 250], x - 20 [246, 180, 230], x + x [20, 144, 244]
#   {'mat_dtype': True}: float64, x [10.0, 200.0, 250.0], x - 20 [-10.0, 180.0, 230.0], x + x [20.0, 400.0, 500.0]
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check scipy==1.17.1 numpy==2.4.6

cat > load.py <<'PYTHON'
import io
import struct

from scipy.io import loadmat

BYTES, INT32, UINT32, MATRIX, DOUBLE_CLASS = 2, 5, 6, 14, 6


def element(kind, data):
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def saved(name, values):
    """A file of version 5 with an array of class double whose values are stored as bytes."""
    header = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H", 0x0100) + b"IM"
    parts = element(UINT32, struct.pack("<II", DOUBLE_CLASS, 0)) + element(INT32, struct.pack("<ii", 1, len(values)))
    return io.BytesIO(header + element(MATRIX, parts + element(1, name) + element(BYTES, bytes(values))))


for options in ({}, {"mat_dtype": True}):
    x = loadmat(saved(b"x", [10, 200, 250]), **options)["x"]
    print(f"{options}: {x.dtype}, x {x[0].tolist()}, x - 20 {(x - 20)[0].tolist()}, x + x {(x + x)[0].tolist()}")
PYTHON

venv/bin/python load.py | tee found
diff seen found
