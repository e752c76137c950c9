#!/usr/bin/env bash
# webdataset joins files into one sample whose names are equal up to the first dot, and splits one by their order.
#
# Seen with: webdataset 1.0.2, CPython 3.11.
#
# A sample is the files of one name with different extensions, and the extension begins at the first dot, not the last:
# scan_0.5.png and scan_0.7.png are one sample with two fields. In a version or a number, dots are common. Files belong
# together only where they stand beside each other in the archive: tar of a folder keeps the order of the disk, and a
# sample whose picture and label are apart becomes two, one of which has no label. Neither is an error.
#
# Output seen:
#   no dots: ['scan_5 cls png', 'scan_7 cls png']
#   dots: ['scan_0 5.cls 5.png 7.cls 7.png']
#   other order: ['a png', 'b png', 'a cls', 'b cls']
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check webdataset==1.0.2 numpy==2.4.6 pyyaml==6.0.3

cat > read.py <<'PYTHON'
import io
import tarfile

import webdataset


def samples(*names):
    with tarfile.open("rows.tar", "w") as archive:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.size = 1
            archive.addfile(entry, io.BytesIO(b"1"))
    read = webdataset.WebDataset("rows.tar", shardshuffle=False)
    return [" ".join([row["__key__"], *sorted(field for field in row if field[0] != "_")]) for row in read]


print("no dots:", samples("scan_5.png", "scan_5.cls", "scan_7.png", "scan_7.cls"))
print("dots:", samples("scan_0.5.png", "scan_0.5.cls", "scan_0.7.png", "scan_0.7.cls"))
print("other order:", samples("a.png", "b.png", "a.cls", "b.cls"))
PYTHON

venv/bin/python read.py 2>/dev/null | tee found
diff seen found
