"""One pass over the training rows that keeps a label and a hash of each, and a sample of bounded size."""

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from trainjob.api import Dataset, Source
from trainjob.data.labels import label_numbers
from trainjob.data.rows import Rows
from trainjob.data.split import Split, fit_split
from trainjob.errors import DataError

T = TypeVar("T")
Visit = Callable[[Rows], np.ndarray]
"""Gives the hashes of the rows, uint64 [n]."""


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
    """The rows' labels and hashes."""

    classes: list[str]
    """Sorted."""
    labels: np.ndarray
    """Class of each row, int64 [n]."""
    hashes: np.ndarray
    """uint64 [n]."""

    @property
    def digest(self) -> str:
        """Tells these rows, in this order, from others."""
        names = json.dumps(self.classes).encode()
        return hashlib.blake2b(names + self.labels.tobytes() + self.hashes.tobytes(), digest_size=16).hexdigest()

    def divide(self, fraction: float | None, seed: int) -> "Division":
        """Sets rows aside for validation, if a fraction is given. Raises DataError for a class that is too small."""
        if fraction is None:
            return Division(None, self.labels, np.ones(len(self.labels), bool))
        split = fit_split(self.hashes, self.labels, self.classes, fraction, seed)
        return Division(split, self.labels, ~split.is_validation(self.hashes, self.labels))


@dataclass(frozen=True)
class Division:
    """Which rows train."""

    split: Split | None
    labels: np.ndarray
    """Class of each row, int64 [n]."""
    is_training: np.ndarray
    """bool [n]."""

    @property
    def rows(self) -> dict[str, int]:
        """Rows that train and rows set aside for validation."""
        train = int(np.sum(self.is_training))
        return {"train": train, "validation": len(self.labels) - train}

    @property
    def class_counts(self) -> list[int]:
        """Training rows of each class."""
        return np.bincount(self.labels[self.is_training]).tolist()


def take_survey(source: Source, label: str | None, tables: Iterable[Rows], visit: Visit) -> Survey:
    """Read the rows of `source` once. Without a label, all are of one class "".

    Raises DataError where there are no rows and for empty labels.
    """
    numbers: dict[str, int] = {}
    labels: list[np.ndarray] = []
    hashes: list[np.ndarray] = []
    for rows in tables:
        hashes.append(visit(rows))
        if label is None:
            labels.append(np.full(len(rows.table), numbers.setdefault("", 0)))
        else:
            labels.append(label_numbers(rows, label, numbers))
    if not numbers:
        raise DataError(f"{source.uri} holds no rows")
    classes = sorted(numbers)
    ranks = np.empty(len(classes), np.int64)
    ranks[[numbers[name] for name in classes]] = np.arange(len(classes))
    return Survey(classes, ranks[np.concatenate(labels)], np.concatenate(hashes))


def divide_by_label(
    dataset: Dataset, label: str, seed: int, tables: Iterable[Rows], visit: Visit
) -> tuple[list[str], Division, str]:
    """The training source's classes, which of its rows train, and their digest. Raises DataError for rows of one class
    alone, besides what `take_survey` and `Survey.divide` do."""
    survey = take_survey(dataset.train, label, tables, visit)
    if len(survey.classes) == 1:
        raise DataError(f'{dataset.train.uri}: every row has the label "{survey.classes[0]}"; at least two are needed')
    return survey.classes, survey.divide(dataset.validation.fraction, seed), survey.digest
