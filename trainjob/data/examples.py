"""Prepared rows in memory: one flat array instead of an object for each row."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike

from trainjob.data.arrays import as_numpy

IGNORED = -100
"""The label of a token slot where nothing is learned."""
TEACHER = "teacher"
"""The column with the logits of a teacher."""
ROW = "row"
"""The column that tells where a row of a set is that is read in parts: of two, the larger comes later."""


@dataclass(frozen=True)
class Examples:
    """`n` prepared rows: row `i` is `values[offsets[i] : offsets[i + 1]]` with the class `labels[i]`."""

    values: np.ndarray
    """Tokens int32 or pixels uint8 of all rows, one after the other."""
    offsets: np.ndarray
    """int64 [n + 1]."""
    labels: np.ndarray
    """int64 [n]; -1 for a row that has none but the teacher's."""
    teacher: np.ndarray | None = None
    """The logits that a teacher gives them, float32 [n, C]."""
    rows: np.ndarray | None = None
    """Where they are in their set, int64 [n]: of two, the larger comes later."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def lengths(self) -> np.ndarray:
        """Values of each row, int64 [n]."""
        return np.diff(self.offsets)

    def take(self, indices: np.ndarray) -> Self:
        """The rows at `indices`, in that order."""
        lengths = self.lengths[indices]
        offsets = _offsets(lengths)
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        values = self.values[np.repeat(self.offsets[indices], lengths) + within]
        teacher = self.teacher[indices] if self.teacher is not None else None
        rows = self.rows[indices] if self.rows is not None else None
        return type(self)(values, offsets, self.labels[indices], teacher, rows)

    @classmethod
    def from_table(cls, table: pa.Table) -> Self:
        """Rows of a table with the columns `values` (lists of int32 or uint8), `label` (int64) and, where there are
        any, `teacher` (lists of float32, all of one length) and `row` (int64)."""
        lists = table["values"]
        dtype = lists.type.value_type.to_pandas_dtype()
        values = [as_numpy(chunk.flatten()) for chunk in lists.chunks]
        lengths = [as_numpy(chunk.value_lengths()) for chunk in lists.chunks]
        labels = [as_numpy(chunk) for chunk in table["label"].chunks]
        joined = _joined(labels, np.int64)
        offsets = _offsets(_joined(lengths, np.int64))
        return cls(_joined(values, dtype), offsets, joined, _teacher(table, len(joined)), _rows(table))

    @classmethod
    def concat(cls, tables: Iterable[pa.Table]) -> Self:
        """The rows of several such tables, in their order; at least one."""
        return cls.from_table(pa.concat_tables(tables))


def _teacher(table: pa.Table, rows: int) -> np.ndarray | None:
    if TEACHER not in table.column_names:
        return None
    logits = [as_numpy(chunk.flatten()) for chunk in table[TEACHER].chunks]
    return _joined(logits, np.float32).reshape(rows, -1 if rows else 0)


def _rows(table: pa.Table) -> np.ndarray | None:
    if ROW not in table.column_names:
        return None
    return _joined([as_numpy(chunk) for chunk in table[ROW].chunks], np.int64)


def _offsets(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def _joined(arrays: list[np.ndarray], dtype: DTypeLike) -> np.ndarray:
    return np.concatenate([np.empty(0, dtype), *arrays])


def cut(lengths: np.ndarray, batch_size: int) -> list[np.ndarray]:
    """Indices of `lengths` [n] in batches of like length; the last, of the longest, may be smaller."""
    order = np.argsort(lengths, kind="stable")
    return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
