#!/usr/bin/env bash
# dask's median of eight numbers is 52 in one partition and 4 in two, without any sampling being asked for.
#
# Seen with: dask 2026.8.0, pandas 3.1.1, CPython 3.11.
#
# quantile and describe compute quantiles of each partition and merge these. The error is not small: the median of a
# column that is zero for half of its rows comes out as a number that grows with the partitions. Thresholds, and fills
# of missing numbers, that were taken from a sample in pandas are others on the whole table, and change when the table
# is stored in files of another size.
#
# Output seen:
#   1 2 3 4 100 101 102 103, median: pandas 52.0, dask 52.0 in 1, 4.0 in 2, 4.0 in 4 partitions
#   1,000 zeros and 0 to 999, shuffled, median: pandas 0.0, dask 0.0 in 1, 15.0 in 2, 86.5 in 10 partitions
#   50% of describe, 10 partitions: 86.5
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'dask[dataframe]==2026.8.0' pandas==3.1.1

cat > median.py <<'PYTHON'
import warnings

import dask.dataframe as dd
import numpy as np
import pandas as pd

warnings.simplefilter("error")


def medians(what, numbers, counts):
    series = pd.Series(numbers, dtype=float)
    found = ", ".join(
        f"{dd.from_pandas(series, npartitions=count).quantile(0.5).compute()} in {count}" for count in counts
    )
    print(f"{what}, median: pandas {series.quantile(0.5)}, dask {found} partitions")


medians("1 2 3 4 100 101 102 103", [1, 2, 3, 4, 100, 101, 102, 103], (1, 2, 4))
zeros = np.random.default_rng(0).permutation(np.concatenate([np.zeros(1000), np.arange(1000)]))
medians("1,000 zeros and 0 to 999, shuffled", zeros, (1, 2, 10))
described = dd.from_pandas(pd.Series(zeros), npartitions=10).describe().compute()
print("50% of describe, 10 partitions:", described["50%"])
PYTHON

venv/bin/python median.py 2>/dev/null | tee found
diff seen found
