"""Label columns as class indices."""

import difflib
import re

import numpy as np

from trainjob.data.arrays import as_numpy
from trainjob.data.rows import Rows, as_text
from trainjob.errors import DataError

_SHOWN = 10
_ZERO = re.compile(r"-?0(\.0*)?([eE][+-]?\d+)?")
_WHOLE = re.compile(r"(-?[1-9]\d*)\.0*")


def label_numbers(rows: Rows, column: str, numbers: dict[str, int]) -> np.ndarray:
    """The rows' labels as `numbers`, int64 [n]; labels not in it yet are added. Raises DataError for an empty one.

    White space around labels does not count, nor how a whole number is written.
    """
    names, indices = _encoded(rows, column)
    return np.array([numbers.setdefault(canonical(name), len(numbers)) for name in names], np.int64)[indices]


def label_indices(rows: Rows, column: str, classes: list[str]) -> np.ndarray:
    """Index of each row's label in `classes`, int64 [n]. Raises DataError for an empty or unknown one."""
    names, indices = _encoded(rows, column)
    numbers = {name: number for number, name in enumerate(classes)}
    others = {canonical(name): number for name, number in numbers.items()}  # earlier versions have classes such as 1.0
    labels = np.array([numbers.get(name, others.get(canonical(name), -1)) for name in names], np.int64)[indices]
    if (labels < 0).any():
        row = int((labels < 0).argmax())
        label = names[indices[row]]
        close = difflib.get_close_matches(label, classes, n=1)
        known = f'did you mean "{close[0]}"?' if close else f"known are {_shortened(classes)}"
        raise DataError(f'{rows.where(row)}: the label "{label}" does not occur in the training rows; {known}')
    return labels


def canonical(label: str) -> str:
    """A whole number as `1` where it is written as `1.0`, `-0.0` or `0E-9`, as a column of floats has it in Parquet;
    any other label as it is: 1.10 and 1.1 may be versions, 007 and 1e5 codes."""
    if _ZERO.fullmatch(label):
        return "0"
    whole = _WHOLE.fullmatch(label)
    return whole[1] if whole else label


def _encoded(rows: Rows, column: str) -> tuple[list[str], np.ndarray]:
    """Names, and for each row the index of its name."""
    texts = as_text(rows.table[column], column, rows.where).combine_chunks().dictionary_encode("encode")
    names = [(name or "").strip() for name in texts.dictionary.to_pylist()]
    indices = as_numpy(texts.indices)
    if "" in names:
        row = int((np.array([name == "" for name in names])[indices]).argmax())
        raise DataError(f'{rows.where(row)}: the label (column "{column}") is empty: fill it in or drop the row')
    return names, indices


def _shortened(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
