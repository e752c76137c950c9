#!/usr/bin/env bash
# fastparquet returns rows that its filters exclude, and of a small file all; pandas with pyarrow does not.
#
# Seen with: pandas 3.1.1, fastparquet 2026.9.0, pyarrow 26.0.1, numpy 2.4.6, CPython 3.11.
#
# fastparquet leaves out row groups in which no row can fit, by their statistics, and returns the others whole. A small
# file is one group, and no row is left out at all. With sorted data, and with partitions by folder, the result is right
# or nearly so. The same filters, moved from pandas or dask, then train on rows of other years, or of the test split.
# row_filter=True is needed.
#
# Output seen:
#   ('split', '==', 'train'), small.parquet, rows of 8: pandas 4, fastparquet 8, with row_filter 4
#   ('split', '==', 'train'), groups.parquet, rows of 8: pandas 4, fastparquet 8, with row_filter 4
#   ('year', '>', 2020), small.parquet, rows of 8: pandas 4, fastparquet 8, with row_filter 4
#   ('year', '>', 2020), groups.parquet, rows of 8: pandas 4, fastparquet 5, with row_filter 4
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  pandas==3.1.1 fastparquet==2026.9.0 pyarrow==26.0.1 numpy==2.4.6

cat > filters.py <<'PYTHON'
import pandas as pd
from fastparquet import ParquetFile

rows = pd.DataFrame({"split": ["train", "test"] * 4, "year": range(2017, 2025)})
rows.to_parquet("small.parquet", engine="pyarrow")
rows.to_parquet("groups.parquet", engine="pyarrow", row_group_size=3)
for filters in ([("split", "==", "train")], [("year", ">", 2020)]):
    for name in ("small", "groups"):
        by_pandas = pd.read_parquet(f"{name}.parquet", engine="pyarrow", filters=filters)
        file = ParquetFile(f"{name}.parquet")
        found, filtered = file.to_pandas(filters=filters), file.to_pandas(filters=filters, row_filter=True)
        print(f"{filters[0]}, {name}.parquet, rows of 8: pandas {len(by_pandas)}, fastparquet {len(found)}", end="")
        print(f", with row_filter {len(filtered)}")
PYTHON

venv/bin/python filters.py | tee found
diff seen found
