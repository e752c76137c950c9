"""Reads columns of numbers."""

import math
import re
from collections.abc import Sequence

import numpy as np

from trainjob.data.arrays import as_arrow, as_numpy
from trainjob.data.read.bad_rows import BadRows
from trainjob.data.read.label_lists import LABELS, empty_label_error
from trainjob.data.read.rows import OnBadRow, Rows, as_text
from trainjob.errors import RowError
from trainjob.formatting import cut

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_WITH_COMMA = re.compile(r"[+-]?[\d.]*\d+(,\d+)+(\.\d+)?", re.ASCII)
MAX_NUMBER = 1e100
"""The squares of larger numbers, and their sums, could overflow."""
_NOT_FINITE = ("nan", "inf", "infinity")
_MAX_CHARACTERS = 60
_NOT_A_NUMBER = "is not a number"


def read_numbers(rows: Rows, column: str, on_bad: OnBadRow) -> tuple[Rows, np.ndarray]:
    """The rows with a number within ±MAX_NUMBER in `column`, and these numbers, float64 [n]. `on_bad` is called for
    each other row; NaN in a column of numbers is an empty cell."""
    rows, found = _read_columns(rows, [column], on_bad)
    return rows, found[:, 0]


def with_numbers(rows: Rows, columns: Sequence[str], on_bad: OnBadRow) -> Rows:
    """The rows with such a number in each of the `columns`, and with the column LABELS, which lists them. `on_bad` is
    called once for each other row."""
    rows, found = _read_columns(rows, columns, on_bad)
    return Rows(rows.table.append_column(LABELS, as_arrow(found)), rows.where, rows.size)


def listed_numbers(rows: Rows, column: str) -> np.ndarray:
    """The numbers float64 [n, columns] that `with_numbers` has put into `column`."""
    lists = rows.table[column].combine_chunks()
    return as_numpy(lists.flatten()).reshape(-1, lists.type.list_size)


def words_among(bad: BadRows) -> int:
    """The number of rows whose label is not a number."""
    return sum(mistake.rows for name, mistake in bad.mistakes.items() if name.endswith(_NOT_A_NUMBER))


def _read_columns(rows: Rows, columns: Sequence[str], on_bad: OnBadRow) -> tuple[Rows, np.ndarray]:
    """The usable rows, and their numbers float64 [n, columns]. Others are reported in their order, for the first of
    the columns that is wrong."""
    found = np.empty((len(rows.table), len(columns)))
    cells = list[tuple[list[str], np.ndarray]]()
    for number, column in enumerate(columns):
        texts = as_text(rows.table[column], column, rows.where).combine_chunks()
        encoded = texts.dictionary_encode("encode")
        names = [(name or "").strip() for name in encoded.dictionary.to_pylist()]
        numbers = np.array([float(name) if _NUMBER.fullmatch(name) else math.nan for name in names], np.float64)
        indices = as_numpy(encoded.indices)
        found[:, number] = numbers[indices]
        cells.append((names, indices))
    is_unusable = ~(np.abs(found) <= MAX_NUMBER)
    is_bad = is_unusable.any(axis=1)
    for index in np.flatnonzero(is_bad).tolist():
        number = int(is_unusable[index].argmax())
        names, indices = cells[number]
        on_bad(_error(rows, columns[number], index, names[indices[index]]))
    return rows.take(np.flatnonzero(~is_bad)), found[~is_bad]


def _error(rows: Rows, column: str, index: int, text: str) -> RowError:
    location = rows.where(index)
    if not text:
        return empty_label_error(location, column)
    shown = cut(text, _MAX_CHARACTERS)
    if text.lstrip("+-").lower() in _NOT_FINITE or (_NUMBER.fullmatch(text) and math.isinf(float(text))):
        kind = f'the label (column "{column}") is not a finite number'
        return RowError(f'{location}: {kind}: "{shown}"; fill it in or drop the row', location, kind, f'"{shown}"')
    if _NUMBER.fullmatch(text):
        kind = f'the label (column "{column}") is beyond ±{MAX_NUMBER:g}'
        return RowError(f'{location}: {kind}: "{shown}"; correct it or drop the row', location, kind, f'"{shown}"')
    has_comma = _WITH_COMMA.fullmatch(text) is not None
    advice = "; write it with a decimal point and without separators of thousands" if has_comma else ""
    kind = f'the label (column "{column}") {_NOT_A_NUMBER}'
    return RowError(f'{location}: {kind}: "{shown}"{advice}', location, kind, f'"{shown}"{advice}')
