"""Finds columns that hold the label in other words."""

import numpy as np
import pyarrow as pa

from trainjob.data.arrays import as_numpy
from trainjob.kinds.inputs.cells import as_categories, as_numbers

FEWEST_ROWS = 20
ROWS_OF_A_VALUE = 2
"""Fewer rows of each value, on average, may have the same label by chance."""
TOLERANCE = 1e-9
"""The largest error of a line through numbers that counts as exact, in standard deviations of the labels."""


def tells(cells: pa.Array, labels: pa.Array) -> bool:
    """Whether the cells of a column alone tell the labels of the same rows: each value always has the same label, or a
    line leads from one number to the other."""
    names, answers = as_categories(cells), as_categories(labels)
    values, classes = names.dictionary_encode("encode"), answers.dictionary_encode("encode")
    count = len(values.dictionary)
    if len(values) < FEWEST_ROWS or count < 2:
        return False
    if count * ROWS_OF_A_VALUE <= len(values):
        pairs = as_numpy(values.indices).astype(np.int64) * len(classes.dictionary) + as_numpy(classes.indices)
        if len(np.unique(pairs)) == count:
            return True
    y, no_label = as_numbers(labels)
    if no_label.any():
        return False
    x, no_number = as_numbers(cells)
    if no_number.any() or not (np.isfinite(x) & np.isfinite(y)).all() or not (x.std() and y.std()):
        return False
    x, y = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
    return bool(np.abs(y - (x * y).mean() * x).max() < TOLERANCE)
