#!/usr/bin/env bash
# nibabel writes the labels 1, 2 and 5 of a segmentation as 0.99999..., 1.99999... and 4.99999..., and a cast cuts them.
#
# Seen with: nibabel 5.4.2, numpy 2.4.6, CPython 3.11.
#
# The header of the scan is passed on, so that a segmentation lies where the scan does, and with it the type to store.
# Floats, as a network and get_fdata() give them, are stretched to the range of that type and get a scale in the header,
# even where each is a whole number that fits. Reading multiplies again, and is near but not equal: == 1 finds no voxel,
# and astype(int) moves every region to the next lower number. Labels of an integer type are stored as they are, also by
# the same header.
#
# Output seen:
#   float64: stored as int16, 0 of 16 voxels == 1, cast [0, 1, 4]
#   float32: stored as int16, 0 of 16 voxels == 1, cast [0, 1, 4]
#   uint8: stored as int16, 16 of 16 voxels == 1, cast [0, 1, 2, 5]
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check nibabel==5.4.2 numpy==2.4.6

cat > labels.py <<'PYTHON'
import nibabel
import numpy as np

header = nibabel.Nifti1Header()
header.set_data_dtype(np.int16)
labels = np.zeros((4, 4, 4))
labels[1], labels[2], labels[3] = 1, 2, 5
for kind in (np.float64, np.float32, np.uint8):
    nibabel.save(nibabel.Nifti1Image(labels.astype(kind), np.eye(4), header), "labels.nii")
    image = nibabel.load("labels.nii")
    found = image.get_fdata()
    cut = np.unique(found.astype(int)).tolist()
    name = np.dtype(kind).name
    print(f"{name}: stored as {image.get_data_dtype()}, {(found == 1).sum()} of 16 voxels == 1, cast {cut}")
PYTHON

venv/bin/python labels.py | tee found
diff seen found
