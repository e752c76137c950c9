"""Prepared rows in memory, in flat arrays rather than one object per row."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike

from trainjob.data.arrays import as_numpy

IGNORED = -100
"""The label of token slots that are not learned."""
TEACHER = "teacher"
"""The column of the teacher's logits."""
ROW = "row"
"""The column with the position of a row in a set that is read in parts; only the order matters."""


@dataclass(frozen=True)
class Examples:
    """`n` prepared rows: row `i` is `values[offsets[i] : offsets[i + 1]]` with the label `labels[i]`."""

    values: np.ndarray
    """Codes of tokens (uint16 or int32), or pixels (uint8), of all rows, concatenated."""
    offsets: np.ndarray
    """int64 [n + 1]."""
    labels: np.ndarray | None = None
    """[n, ...]; -1 for a row that only the teacher has labeled. None if rows have no labels."""
    teacher: np.ndarray | None = None
    """The teacher's logits, float32 [n, C]."""
    rows: np.ndarray | None = None
    """Positions in the set, int64 [n]; only their order matters."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        """The number of values of each row, int64 [n]."""
        return np.diff(self.offsets)

    def take(self, indices: np.ndarray) -> Self:
        """The rows at `indices`, in that order."""
        starts = self.offsets[indices]
        lengths = self.offsets[indices + 1] - starts  # of these rows alone, as there may be millions of others
        offsets = _offsets(lengths)
        if len(lengths) and bool((lengths == lengths[0]).all()):
            values = self.values[(starts[:, None] + np.arange(lengths[0])).ravel()]
        else:
            within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
            values = self.values[np.repeat(starts, lengths) + within]
        others = (None if each is None else each[indices] for each in (self.labels, self.teacher, self.rows))
        return type(self)(values, offsets, *others)

    @classmethod
    def from_table(cls, table: pa.Table) -> Self:
        """Rows of a table with the column `values` (lists of numbers) and optionally `label` (numbers, or lists of
        equal length), `teacher` (lists of float32 of equal length) and `row` (int64)."""
        lists = table["values"]
        dtype = lists.type.value_type.to_pandas_dtype()
        values = [as_numpy(chunk.flatten()) for chunk in lists.chunks]
        lengths = [as_numpy(chunk.value_lengths()) for chunk in lists.chunks]
        offsets = _offsets(_joined(lengths, np.int64))
        others = (_column(table, name) for name in ("label", TEACHER, ROW))
        return cls(_joined(values, dtype), offsets, *others)

    @classmethod
    def concat(cls, tables: Iterable[pa.Table]) -> Self:
        """The rows of several such tables, in order; at least one table."""
        return cls.from_table(pa.concat_tables(tables))


def _column(table: pa.Table, name: str) -> np.ndarray | None:
    """A column of numbers [n], or of lists of equal length [n, k]; None if the table has no such column."""
    if name not in table.column_names:
        return None
    column = table[name]
    if not pa.types.is_nested(column.type):
        return _joined([as_numpy(chunk) for chunk in column.chunks], column.type.to_pandas_dtype())
    numbers = _joined([as_numpy(chunk.flatten()) for chunk in column.chunks], column.type.value_type.to_pandas_dtype())
    return numbers.reshape(len(table), -1 if len(table) else 0)


def _offsets(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def _joined(arrays: list[np.ndarray], dtype: DTypeLike) -> np.ndarray:
    return np.concatenate([np.empty(0, dtype), *arrays])


def batches_by_length(lengths: np.ndarray, batch_size: int) -> list[np.ndarray]:
    """Indices of `lengths` [n] in batches of similar length; the last one, with the longest rows, may be smaller."""
    order = np.argsort(lengths, kind="stable")
    return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
