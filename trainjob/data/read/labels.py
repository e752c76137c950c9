"""Converts label columns to class indices."""

import difflib
from collections.abc import Iterator

import numpy as np

from trainjob.data.arrays import as_numpy
from trainjob.data.read.label_lists import canonical, empty_label_error, only_label
from trainjob.data.read.rows import Rows, as_text
from trainjob.errors import RowError, listed

_SHOWN = 10
_HINTED = 5
"""The most wrong labels that are compared with all classes for a hint: that is slow if there are many of both."""


def label_numbers(rows: Rows, column: str, numbers: dict[str, int]) -> np.ndarray:
    """The indices of the rows' labels, int64 [n], -1 for empty labels; adds new labels to `numbers`.

    Ignores surrounding white space and the notation of whole numbers.
    """
    names, indices = _encoded(rows, column)
    return np.array([numbers.setdefault(canonical(name), len(numbers)) if name else -1 for name in names], np.int64)[
        indices
    ]


def known_indices(rows: Rows, column: str, classes: list[str]) -> np.ndarray:
    """The index of each row's label in `classes`, int64 [n]; -1 for empty and unknown labels. A list of one label is
    that label."""
    names, indices = _encoded(rows, column)
    numbers = {name: number for number, name in enumerate(classes)}
    others = {canonical(name): number for name, number in numbers.items()}  # earlier versions have classes such as 1.0
    found = [numbers.get(name, others.get(canonical(only_label(name)), -1)) for name in names]
    return np.array(found, np.int64)[indices]


def label_errors(rows: Rows, column: str, bad: np.ndarray, classes: list[str] | None = None) -> Iterator[RowError]:
    """An error for each of the `bad` rows: its label is empty or not one of the `classes`."""
    if not len(bad):
        return
    names, indices = _encoded(rows, column)
    known, kind = f"known labels are {listed(classes or [], _SHOWN)}", "the label does not occur in the training rows"
    for number, row in enumerate(bad.tolist()):
        location, label = rows.where(row), names[indices[row]]
        if not label:
            yield empty_label_error(location, column)
            continue
        close = difflib.get_close_matches(label, classes or [], n=1) if number < _HINTED else []
        hint = f'did you mean "{close[0]}"?' if close else ""
        message = f'{location}: the label "{label}" does not occur in the training rows; {hint or known}'
        detail = f'"{label}", {hint}' if hint else f'"{label}"'
        yield RowError(message, location, kind, detail, advice=known)


def _encoded(rows: Rows, column: str) -> tuple[list[str], np.ndarray]:
    """Distinct names, "" for empty ones, and the index of each row's name."""
    texts = as_text(rows.table[column], column, rows.where).combine_chunks().dictionary_encode("encode")
    return [(name or "").strip() for name in texts.dictionary.to_pylist()], as_numpy(texts.indices)
