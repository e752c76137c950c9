"""Label columns as text and as class indices."""

import difflib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trainjob.data.rows import Rows, as_text
from trainjob.errors import DataError

_SHOWN = 10


def label_texts(rows: Rows, column: str) -> pa.Array:
    """The labels without blanks around them. Raises DataError for an empty one."""
    labels = pc.utf8_trim_whitespace(as_text(rows.table[column], column, rows.where).combine_chunks())
    empty = pc.or_kleene(pc.is_null(labels), pc.equal(labels, "")).to_numpy(zero_copy_only=False)
    if empty.any():
        where = rows.where(int(empty.argmax()))
        raise DataError(f'{where}: the label (column "{column}") is empty: fill it in or drop the row')
    return labels


def label_indices(rows: Rows, column: str, classes: list[str]) -> np.ndarray:
    """Index of each row's label in `classes`, int64 [n]. Raises DataError for an empty or unknown label."""
    labels = label_texts(rows, column)
    indices = pc.index_in(labels, pa.array(classes, pa.string()))
    if indices.null_count:
        row = int(pc.is_null(indices).to_numpy(zero_copy_only=False).argmax())
        label = labels[row].as_py()
        close = difflib.get_close_matches(label, classes, n=1)
        known = f'did you mean "{close[0]}"?' if close else f"known are {shortened(classes)}"
        raise DataError(f'{rows.where(row)}: the label "{label}" does not occur in the training rows; {known}')
    return indices.to_numpy().astype(np.int64)


def shortened(names: list[str]) -> str:
    """The names, or the first few of them and how many more there are."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
