#!/usr/bin/env bash
# xarray reads the zeros of a Zarr array as missing numbers, and whole numbers as floats, in format 2 and not in 3.
#
# Seen with: xarray 2026.9.0, zarr 3.1.6, numpy 2.4.6, CPython 3.11.
#
# Zarr's fill_value is what a chunk that was never written contains, and zarr-python sets it to 0 unless asked. In
# format 2, xarray takes it for netCDF's _FillValue, which marks missing values. Rain, counts and masks that were
# written by zarr are read with NaN for each 0, and their means are those of the rest. The same program with format 3,
# the default of today, is right. mask_and_scale=False keeps the zeros; use_zarr_fill_value_as_mask=False, whose name
# promises it, is taken and ignored.
#
# Output seen:
#   format 2, zarr: [0 0 3 9], mean 3.0
#   format 2, xarray: [nan nan  3.  9.], mean 6.0
#   format 2, xarray, mask_and_scale=False: [0 0 3 9], mean 3.0
#   format 2, xarray, use_zarr_fill_value_as_mask=False: [nan nan  3.  9.], mean 6.0
#   format 3, zarr: [0 0 3 9], mean 3.0
#   format 3, xarray: [0 0 3 9], mean 3.0
#   format 3, xarray, mask_and_scale=False: [0 0 3 9], mean 3.0
#   format 3, xarray, use_zarr_fill_value_as_mask=False: [0 0 3 9], mean 3.0
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check xarray==2026.9.0 zarr==3.1.6 numpy==2.4.6

cat > zeros.py <<'PYTHON'
import warnings

import xarray as xr
import zarr

warnings.simplefilter("error", RuntimeWarning)
RAIN = [0, 0, 3, 9]
for version in (2, 3):
    group = zarr.open_group(f"{version}.zarr", mode="w", zarr_format=version)
    names = {"dimension_names": ["day"]} if version == 3 else {"attributes": {"_ARRAY_DIMENSIONS": ["day"]}}
    group.create_array("rain", shape=(4,), chunks=(2,), dtype="int32", **names)[:] = RAIN
    print(f"format {version}, zarr: {group['rain'][:]}, mean {group['rain'][:].mean()}")
    for name in ("", "mask_and_scale", "use_zarr_fill_value_as_mask"):
        kwargs = {name: False} if name else {}
        rain = xr.open_dataset(f"{version}.zarr", engine="zarr", consolidated=False, **kwargs).rain
        print(f"format {version}, xarray{name and f', {name}=False'}: {rain.values}, mean {rain.mean().item()}")
PYTHON

venv/bin/python zeros.py | tee found
diff seen found
