"""One pass over the training rows that keeps a label and a hash of each, and a sample of bounded size.

Each task gives what it has seen of its share of the rows; the result does not depend on how rows are shared out.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from trainjob.api import Dataset, Source
from trainjob.data.labels import label_numbers
from trainjob.data.preprocessor import Preprocessor
from trainjob.data.profile import Keys
from trainjob.data.reading import counted, read_part
from trainjob.data.rows import Part, Rows
from trainjob.data.split import Split, fit_split
from trainjob.data.tasks import Mapper, tasks_of
from trainjob.errors import DataError, listed

T = TypeVar("T")


@dataclass(frozen=True)
class Seen(Generic[T]):
    """What is seen of some rows."""

    hashes: np.ndarray
    """uint64 [n]."""
    item: Callable[[int], T]
    """Gives what a sample keeps of the row at an index."""
    marks: np.ndarray | None = None
    """uint8 [n]: 0 for a row without text, otherwise 1 or, for an image, what `fit_images` says. None where all
    are 1."""


def nothing(_: int) -> None:
    """What is kept of a row where no sample is wanted."""


@dataclass(frozen=True)
class Look(Generic[T]):
    """How rows are looked at. What it calls may travel to other processes."""

    columns: Sequence[str] | None
    """What is read; all where it is None."""
    label: str | None
    """Without a label, all rows are of one class ""."""
    see: Callable[[Rows], Seen[T]]
    sampled: int = 1
    """How many rows the sample holds."""


class Sample(Generic[T]):
    """The rows with the largest hashes: a random sample that does not depend on the rows' order.

    Validation rows have the smallest hashes of their class, so the sample is mostly of training rows.
    """

    def __init__(self, limit: int, floor: int = 0) -> None:
        self._limit = limit
        self.floor = floor
        """Rows with smaller hashes are not in it."""
        self._rows: list[tuple[int, int, T]] = []
        self._seen = 0

    def add(self, row_hashes: np.ndarray, item: Callable[[int], T]) -> None:
        """Offer the next rows, with hashes uint64 [n]; `item` gives what to keep of the row at an index."""
        for index in np.flatnonzero(row_hashes >= np.uint64(self.floor)).tolist():
            self._rows.append((int(row_hashes[index]), self._seen + index, item(index)))
        self._seen += len(row_hashes)
        self._prune()

    def merge(self, later: "Sample[T]") -> None:
        """Offer the rows of a sample of the rows that come next."""
        rows = ((row_hash, self._seen + row, item) for row_hash, row, item in later._largest())  # noqa: SLF001
        self._rows += [row for row in rows if row[0] >= self.floor]
        self._seen += later._seen  # noqa: SLF001
        self._prune()

    def pruned(self) -> "Sample[T]":
        """It, without the rows that are kept in case of need."""
        self._rows = self._largest()
        return self

    def items(self, wanted: np.ndarray) -> list[T]:
        """What was kept of the rows where `wanted`, bool [rows seen], is true."""
        return [item for _, row, item in self._largest() if wanted[row]]

    def _prune(self) -> None:
        if len(self._rows) >= 2 * self._limit:
            self._rows = self._largest()
            self.floor = self._rows[-1][0]

    def _largest(self) -> list[tuple[int, int, T]]:
        return sorted(self._rows, key=lambda row: row[0], reverse=True)[: self._limit]


@dataclass(frozen=True)
class Survey(Generic[T]):
    """What is known of all rows."""

    classes: list[str]
    """Sorted."""
    labels: np.ndarray
    """Class of each row, int64 [n]."""
    hashes: np.ndarray
    """uint64 [n]."""
    marks: np.ndarray
    """As in `Seen`, uint8 [n]."""
    sample: Sample[T]

    @property
    def digest(self) -> str:
        return digest_of(self.classes, self.labels, self.hashes)

    def divide(self, fraction: float | None, seed: int) -> "Division":
        """Sets rows aside for validation, if a fraction is given. Raises DataError for a class that is too small."""
        keys = Keys(self.labels, self.hashes, self.marks == 0)
        if fraction is None:
            return Division(None, keys, np.ones(len(self.labels), bool))
        split = fit_split(self.hashes, self.labels, self.classes, fraction, seed)
        return Division(split, keys, ~split.is_validation(self.hashes, self.labels))


@dataclass(frozen=True)
class Division:
    """Which rows train."""

    split: Split | None
    keys: Keys
    """Of all rows."""
    is_training: np.ndarray
    """bool [n]."""

    @property
    def rows(self) -> dict[str, int]:
        """Rows that train and rows set aside for validation."""
        train = int(np.sum(self.is_training))
        return {"train": train, "validation": len(self.is_training) - train}

    @property
    def class_counts(self) -> list[int]:
        """Training rows of each class."""
        return np.bincount(self.keys.labels[self.is_training]).tolist()

    @property
    def sets(self) -> dict[str, Keys]:
        """The rows that train and, where there is a split, those set aside for validation."""
        sets = {"train": self.keys.take(self.is_training)}
        return sets if self.split is None else sets | {"validation": self.keys.take(~self.is_training)}


class FittedOn(NamedTuple):
    """What comes of the first pass over the training rows."""

    preprocessor: Preprocessor
    division: Division
    digest: str
    """Of all rows."""
    texts: Sequence[str] = ()
    """A sample of the training texts."""
    notes: Sequence[str] = ()
    """What else users should know about the rows, in words."""


@dataclass(frozen=True)
class _Share(Generic[T]):
    """What a task has seen of its rows."""

    names: list[str]
    labels: np.ndarray
    """Each row's place in `names`, int64 [n]."""
    hashes: np.ndarray
    marks: np.ndarray
    sample: Sample[T]


def _look_at(task: tuple[list[Part], int], look: Look[T]) -> _Share[T]:
    """The rows of some parts; none with a hash below the task's floor gets into the sample."""
    parts, floor = task
    sample, numbers = Sample[T](look.sampled, floor), dict[str, int]()
    labels, hashes, marks = [np.empty(0, np.int64)], [np.empty(0, np.uint64)], [np.empty(0, np.uint8)]
    for part in parts:
        for rows in read_part(part, look.columns):
            seen = look.see(rows)
            sample.add(seen.hashes, seen.item)
            hashes.append(seen.hashes)
            marks.append(np.ones(len(seen.hashes), np.uint8) if seen.marks is None else seen.marks)
            if look.label is not None:
                labels.append(label_numbers(rows, look.label, numbers))
            else:
                labels.append(np.full(len(rows.table), numbers.setdefault("", 0)))
    return _Share(list(numbers), np.concatenate(labels), np.concatenate(hashes), np.concatenate(marks), sample.pruned())


def take_survey(source: Source, parts: Sequence[Part], look: Look[T], mapped: Mapper) -> Survey[T]:
    """Have the rows of `source`, which are in the parts, read once.

    Raises DataError where there are no rows and for empty labels.
    """
    sample, numbers = Sample[T](look.sampled), dict[str, int]()
    labels, hashes, marks = list[np.ndarray](), list[np.ndarray](), list[np.ndarray]()

    tasks = tasks_of(parts)
    with_floors = ((task, sample.floor) for task in tasks)
    for share in counted(mapped(partial(_look_at, look=look), with_floors), tasks):
        order = np.array([numbers.setdefault(name, len(numbers)) for name in share.names], np.int64)
        labels.append(order[share.labels])
        hashes.append(share.hashes)
        marks.append(share.marks)
        sample.merge(share.sample)
    if not numbers:
        raise DataError(f"{listed(source.all_uris)} holds no rows")
    classes = sorted(numbers)
    ranks = np.empty(len(classes), np.int64)
    ranks[[numbers[name] for name in classes]] = np.arange(len(classes))
    return Survey(classes, ranks[np.concatenate(labels)], np.concatenate(hashes), np.concatenate(marks), sample)


def survey_classes(dataset: Dataset, parts: Sequence[Part], look: Look[T], mapped: Mapper) -> Survey[T]:
    """The survey of the training source. Raises DataError for rows of one class alone, besides what `take_survey`
    does."""
    survey = take_survey(dataset.train, parts, look, mapped)
    if len(survey.classes) == 1:
        place = listed(dataset.train.all_uris)
        raise DataError(f'{place}: every row has the label "{survey.classes[0]}"; at least two are needed')
    return survey


def digest_of(classes: list[str], labels: np.ndarray, hashes: np.ndarray) -> str:
    """Tells rows of these classes, labels int64 [n] and hashes uint64 [n], in this order, from others."""
    names = json.dumps(classes).encode()
    return hashlib.blake2b(names + labels.tobytes() + hashes.tobytes(), digest_size=16).hexdigest()
