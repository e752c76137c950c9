#!/usr/bin/env bash
# xarray writes joined files in the packing of the first, and numbers beyond its range come back as others.
#
# Seen with: xarray 2026.9.0, h5netcdf 1.8.2, h5py 3.16.0, numpy 2.4.6, CPython 3.11.
#
# Weather data such as ERA5 is packed: 16-bit integers with a scale and an offset, which fit the values of each file.
# Opened files give floats, but each variable remembers its packing, and concat keeps that of the first file. to_netcdf
# packs by it again: values that the first month did not have wrap around, so that 400 becomes 270, and all look
# plausible. drop_encoding() before writing keeps the floats.
#
# Output seen:
#   january, july: [270. 271. 272.] [300. 350. 400.]
#   joined, in memory: [270. 271. 272. 300. 350. 400.]
#   joined, written and read: [270.  271.  272.  271.8 271.4 270.9]
#   the same with drop_encoding(): [270. 271. 272. 300. 350. 400.]
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check xarray==2026.9.0 h5netcdf==1.8.2 h5py==3.16.0 numpy==2.4.6

cat > pack.py <<'PYTHON'
import numpy as np
import xarray


def write(file, days, values):
    data = xarray.Dataset({"t": ("day", np.array(values))}, {"day": days})
    low, high = min(values), max(values)
    packing = {"dtype": "int16", "scale_factor": (high - low) / 65000, "add_offset": (low + high) / 2}
    data.to_netcdf(file, encoding={"t": packing | {"_FillValue": -32768}})


def read(file):
    with xarray.open_dataset(file) as data:
        return data.load()


write("january.nc", [1, 2, 3], [270.0, 271.0, 272.0])
write("july.nc", [181, 182, 183], [300.0, 350.0, 400.0])
print("january, july:", read("january.nc")["t"].values.round(1), read("july.nc")["t"].values.round(1))
both = xarray.concat([read("january.nc"), read("july.nc")], "day")
print("joined, in memory:", both["t"].values.round(1))
both.to_netcdf("both.nc")
print("joined, written and read:", read("both.nc")["t"].values.round(1))
both.drop_encoding().to_netcdf("floats.nc")
print("the same with drop_encoding():", read("floats.nc")["t"].values.round(1))
PYTHON

venv/bin/python pack.py | tee found
diff seen found
