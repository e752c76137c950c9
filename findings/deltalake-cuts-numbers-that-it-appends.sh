#!/usr/bin/env bash
# deltalake appends 2.7 to a column of whole numbers as 2, and an empty text of a partition comes back as missing.
#
# Seen with: deltalake 1.6.6, pyarrow 26.0.1, CPython 3.11.
#
# write_deltalake checks names and casts each column to the type of the table. A first part whose values happen to be
# whole makes a column of 64-bit integers, and decimals of later parts lose their places without a word; in the other
# order, integers are rounded to 53 bits. A value that does not fit, or a text that is not a number, does raise, as does
# pyarrow's own cast for all of these. A column of partition_by is kept in the names of folders, where an empty text and
# a missing value are the same: a label "" becomes null.
#
# Output seen:
#   [1] and [2.7, -0.9]: [0, 1, 2]
#   [0.5] and [9007199254740993]: [0.5, 9007199254740992.0]
#   [1] and ["12"]: [1, 12]
#   pyarrow: Float value 2.700000 was truncated converting to int64
#   labels of rows 1, 2, 3, not partitioned: ['', 'a', None]
#   labels of rows 1, 2, 3, partitioned: [None, 'a', None]
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check deltalake==1.6.6 pyarrow==26.0.1

cat > append.py <<'PYTHON'
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake


def appended(folder, *parts):
    for part in parts:
        write_deltalake(folder, pa.table({"x": part}), mode="append")
    return sorted(DeltaTable(folder).to_pyarrow_table()["x"].to_pylist())


print("[1] and [2.7, -0.9]:", appended("whole", [1], [2.7, -0.9]))
print(f"[0.5] and [{2**53 + 1}]:", appended("floats", [0.5], [2**53 + 1]))
print('[1] and ["12"]:', appended("texts", [1], ["12"]))
try:
    pa.array([2.7]).cast(pa.int64())
except pa.ArrowInvalid as error:
    print("pyarrow:", error)
labels = pa.table({"label": ["", "a", None], "row": [1, 2, 3]})
for name, columns in (("not partitioned", None), ("partitioned", ["label"])):
    write_deltalake(name, labels, partition_by=columns)
    table = DeltaTable(name).to_pyarrow_table().sort_by("row")
    print(f"labels of rows 1, 2, 3, {name}:", table["label"].to_pylist())
PYTHON

venv/bin/python append.py | tee found
diff seen found
