"""Finds columns that disclose the label."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa

from trainjob.data.arrays import as_numpy
from trainjob.kinds.inputs.cells import Read, as_categories, as_numbers

MIN_ROWS = 20
ROWS_OF_A_VALUE = 2
"""With fewer rows of each value, on average, rows may have the same label by chance."""
TOLERANCE = 1e-9
"""The largest error of a line through numbers that counts as exact, in standard deviations of the labels."""


@dataclass(frozen=True)
class ReadLabels:
    """The labels of some rows, read once for all columns."""

    classes: pa.DictionaryArray
    numbers: Read

    @classmethod
    def of(cls, labels: pa.Array) -> Self:
        return cls(as_categories(labels).dictionary_encode("encode"), as_numbers(labels))


def determine_labels(cells: pa.Array, labels: ReadLabels) -> bool:
    """Whether the cells of a column alone determine the labels of the same rows: each value always has the same label,
    or a line leads from one number to the other."""
    if len(cells) < MIN_ROWS:
        return False
    values, classes = as_categories(cells).dictionary_encode("encode"), labels.classes
    count = len(values.dictionary)
    if count < 2:
        return False
    if count * ROWS_OF_A_VALUE <= len(values):
        pairs = as_numpy(values.indices).astype(np.int64) * len(classes.dictionary) + as_numpy(classes.indices)
        if len(np.unique(pairs)) == count:
            return True
    y, no_label = labels.numbers
    if no_label.any():
        return False
    x, no_number = as_numbers(cells)
    if no_number.any() or not (np.isfinite(x) & np.isfinite(y)).all() or not (x.std() and y.std()):
        return False
    x, y = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
    return bool(np.abs(y - (x * y).mean() * x).max() < TOLERANCE)
