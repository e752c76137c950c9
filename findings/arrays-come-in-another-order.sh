#!/usr/bin/env bash
# HDF5, LMDB and safetensors give arrays back in orders of their own: layer10 before layer2, or by type.
#
# Seen with: h5py 3.16.0, lmdb 3.0.0, safetensors 0.8.0, numpy 2.4.6, CPython 3.11.
#
# Each looks like a dict, and Python's dicts and NumPy's npz keep the order of writing. HDF5 and LMDB sort names as
# bytes, safetensors the widest types first and then names. Arrays that are read one after the other, and joined with a
# list of labels or with a network's parameters, are mixed up from the eleventh on; shapes mostly agree, so that nothing
# fails, and tests with ten or fewer pass. track_order=True keeps it in HDF5; numbers with leading zeros sort right.
#
# Output seen:
#   npz: 0 1 2 3 4 5 6 7 8 9 10 11
#   HDF5: 0 1 10 11 2 3 4 5 6 7 8 9
#   HDF5, track_order=True: 0 1 2 3 4 5 6 7 8 9 10 11
#   LMDB: 0 1 10 11 2 3 4 5 6 7 8 9
#   safetensors: 0 1 10 11 2 3 4 5 6 7 8 9
#   safetensors, 0 to 2 of 16 bits, 3 and 4 of 32 bits: 3 4 0 1 2
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  h5py==3.16.0 lmdb==3.0.0 safetensors==0.8.0 numpy==2.4.6

cat > order.py <<'PYTHON'
import h5py
import lmdb
import numpy as np
from safetensors.numpy import load_file, save_file

arrays = {str(number): np.full(2, number, np.float32) for number in range(12)}
np.savez("arrays.npz", **arrays)
print("npz:", *np.load("arrays.npz"))
for what, ordered in (("HDF5", False), ("HDF5, track_order=True", True)):
    with h5py.File("arrays.h5", "w", track_order=ordered) as file:
        for name, array in arrays.items():
            file[name] = array
    with h5py.File("arrays.h5") as file:
        print(f"{what}:", *file)
with lmdb.open("arrays.lmdb") as database:
    with database.begin(write=True) as transaction:
        for name, array in arrays.items():
            transaction.put(name.encode(), array.tobytes())
    with database.begin() as transaction:
        print("LMDB:", *(name.decode() for name, _ in transaction.cursor()))
save_file(arrays, "arrays.safetensors")
print("safetensors:", *load_file("arrays.safetensors"))
mixed = {str(number): np.zeros(2, np.float16 if number < 3 else np.float32) for number in range(5)}
save_file(mixed, "mixed.safetensors")
print("safetensors, 0 to 2 of 16 bits, 3 and 4 of 32 bits:", *load_file("mixed.safetensors"))
PYTHON

venv/bin/python order.py | tee found
diff seen found
