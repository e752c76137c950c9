"""Prepared rows in memory: one flat array instead of an object for each row."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa


@dataclass(frozen=True)
class Examples:
    """`n` prepared rows: row `i` is `values[offsets[i] : offsets[i + 1]]` with the class `labels[i]`."""

    values: np.ndarray
    """Tokens int32 or pixels uint8 of all rows, one after the other."""
    offsets: np.ndarray
    """int64 [n + 1]."""
    labels: np.ndarray
    """int64 [n]."""

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
        return type(self)(
            self.values[np.repeat(self.offsets[indices], lengths) + within], offsets, self.labels[indices]
        )

    @classmethod
    def from_table(cls, table: pa.Table) -> Self:
        """Rows of a table with the columns `values` (lists of int32 or uint8) and `label` (int64)."""
        lists = table["values"]
        dtype = lists.type.value_type.to_pandas_dtype()
        chunks = [chunk.flatten().to_numpy(zero_copy_only=False) for chunk in lists.chunks]
        values = np.concatenate([np.empty(0, dtype), *chunks])
        lengths = [np.empty(0, np.int64), *(chunk.value_lengths().to_numpy() for chunk in lists.chunks)]
        return cls(values, _offsets(np.concatenate(lengths)), table["label"].to_numpy().astype(np.int64, copy=False))

    @classmethod
    def concat(cls, tables: Iterable[pa.Table]) -> Self:
        """The rows of several such tables, in their order; at least one."""
        return cls.from_table(pa.concat_tables(tables))


def _offsets(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
