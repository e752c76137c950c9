"""A random sample of rows of bounded size."""

from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np

T = TypeVar("T")


class Sample(Generic[T]):
    """The rows with the largest hashes: a random sample that does not depend on the order of the rows.

    Validation rows have the smallest hashes of their class, so the sample holds mostly training rows.
    """

    def __init__(self, limit: int, floor: int = 0) -> None:
        self._limit = limit
        self.floor = floor
        """Rows with smaller hashes are not sampled."""
        self._rows: list[tuple[int, int, T]] = []
        self._seen = 0

    def add(self, row_hashes: np.ndarray, item: Callable[[int], T]) -> None:
        """Offers the next rows, with hashes uint64 [n]; `item` returns the item to keep for the row at an index."""
        for index in np.flatnonzero(row_hashes >= np.uint64(self.floor)).tolist():
            self._rows.append((int(row_hashes[index]), self._seen + index, item(index)))
        self._seen += len(row_hashes)
        self._prune()

    def merge(self, later: "Sample[T]") -> None:
        """Offers the rows of a sample that was taken of the rows that follow."""
        rows = ((row_hash, self._seen + row, item) for row_hash, row, item in later._largest())  # noqa: SLF001
        self._rows += [row for row in rows if row[0] >= self.floor]
        self._seen += later._seen  # noqa: SLF001
        self._prune()

    def pruned(self) -> "Sample[T]":
        """This sample, cut to its limit."""
        self._rows = self._largest()
        return self

    def take(self, rows: np.ndarray) -> "Sample[T]":
        """The sample of the rows where `rows`, bool [rows seen], is true."""
        taken, new_indices = Sample[T](self._limit, self.floor), np.cumsum(rows) - 1
        taken._rows = [(row_hash, int(new_indices[row]), item) for row_hash, row, item in self._rows if rows[row]]
        taken._seen = int(np.sum(rows))
        return taken

    def items(self, wanted: np.ndarray) -> list[T]:
        """The items of the rows where `wanted`, bool [rows seen], is true."""
        return [item for _, row, item in self._largest() if wanted[row]]

    def _prune(self) -> None:
        if len(self._rows) >= 2 * self._limit:
            self._rows = self._largest()
            self.floor = self._rows[-1][0]

    def _largest(self) -> list[tuple[int, int, T]]:
        return sorted(self._rows, key=lambda row: row[0], reverse=True)[: self._limit]
