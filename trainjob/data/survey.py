"""One pass over the training rows that keeps a label and a hash of each, and a sample of bounded size."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from trainjob.api import Dataset
from trainjob.data.labels import label_numbers
from trainjob.data.rows import Rows
from trainjob.data.split import Split, fit_split
from trainjob.errors import DataError

T = TypeVar("T")


class Sample(Generic[T]):
    """The rows with the largest hashes: a random sample that does not depend on the rows' order.

    Validation rows have the smallest hashes of their class, so the sample is mostly of training rows.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._floor = 0
        self._rows: list[tuple[int, int, T]] = []
        self._seen = 0

    def add(self, row_hashes: np.ndarray, item: Callable[[int], T]) -> None:
        """Offer the next rows, with hashes uint64 [n]; `item` gives what to keep of the row at an index."""
        for index in np.flatnonzero(row_hashes >= np.uint64(self._floor)).tolist():
            self._rows.append((int(row_hashes[index]), self._seen + index, item(index)))
        self._seen += len(row_hashes)
        if len(self._rows) >= 2 * self._limit:
            self._rows = self._largest()
            self._floor = self._rows[-1][0]

    def items(self, wanted: np.ndarray) -> list[T]:
        """What was kept of the rows where `wanted`, bool [rows seen], is true."""
        return [item for _, row, item in self._largest() if wanted[row]]

    def _largest(self) -> list[tuple[int, int, T]]:
        return sorted(self._rows, key=lambda row: row[0], reverse=True)[: self._limit]


@dataclass(frozen=True)
class Survey:
    classes: list[str]
    """Sorted."""
    labels: np.ndarray
    """Class of each row, int64 [n]."""
    split: Split | None
    is_training: np.ndarray
    """bool [n]: false for rows set aside for validation."""

    @property
    def rows(self) -> dict[str, int]:
        """Rows that train and rows set aside for validation."""
        train = int(np.sum(self.is_training))
        return {"train": train, "validation": len(self.labels) - train}

    @property
    def class_counts(self) -> list[int]:
        """Training rows of each class."""
        return np.bincount(self.labels[self.is_training], minlength=len(self.classes)).tolist()


def take_survey(
    dataset: Dataset, label: str | None, seed: int, tables: Iterable[Rows], visit: Callable[[Rows], np.ndarray]
) -> Survey:
    """Read the training rows once; `visit` gives their hashes, uint64 [n]. Without a label, all are of one class "".

    Raises DataError where there are no rows, for empty labels and for classes too small to split.
    """
    numbers: dict[str, int] = {}
    labels: list[np.ndarray] = [np.empty(0, np.int64)]
    row_hashes: list[np.ndarray] = [np.empty(0, np.uint64)]
    for rows in tables:
        row_hashes.append(visit(rows))
        if label is None:
            labels.append(np.full(len(rows.table), numbers.setdefault("", 0)))
        else:
            labels.append(label_numbers(rows, label, numbers))
    classes = sorted(numbers)
    ranks = np.empty(len(classes), np.int64)
    ranks[[numbers[name] for name in classes]] = np.arange(len(classes))
    ranked, all_hashes = ranks[np.concatenate(labels)], np.concatenate(row_hashes)
    if len(ranked) == 0:
        raise DataError(f"{dataset.train.uri} holds no rows")
    if dataset.validation.fraction is None:
        return Survey(classes, ranked, None, np.ones(len(ranked), bool))
    split = fit_split(all_hashes, ranked, classes, dataset.validation.fraction, seed)
    return Survey(classes, ranked, split, ~split.is_validation(all_hashes, ranked))
