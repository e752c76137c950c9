"""One pass over the training rows that keeps a label and a hash of each row, and a sample of bounded size.

Each task surveys some of the rows; the result does not depend on how the rows are divided among tasks. What a label is
and which rows can be learned from is up to the `LabelReader`.
"""

import hashlib
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from trainjob.api import Dataset
from trainjob.data.first_pass.profile import Keys, joined_labels
from trainjob.data.first_pass.sample import Sample
from trainjob.data.first_pass.split import Split, distinct_rows, fit_split
from trainjob.data.read.bad_rows import BadRows, TooFewRows, valid_rows
from trainjob.data.read.chunking import Mapper, group_parts
from trainjob.data.read.counted_reading import counted, read_part
from trainjob.data.read.rows import OnBadRow, Rows, SourcePart
from trainjob.errors import listed
from trainjob.kinds.input import Input
from trainjob.kinds.target import Target

T = TypeVar("T")


@dataclass(frozen=True)
class ScannedRows(Generic[T]):
    """The content hashes and sampled items of some rows."""

    hashes: np.ndarray
    """uint64 [n]."""
    item: Callable[[int], T]
    """Returns the item that a sample keeps for the row at an index."""
    marks: np.ndarray | None = None
    """uint8 or uint16 [n]: 0 for a row without text, otherwise 1 or what `fit_texts`, `fit_images` or
    `conversation_marks` say. None where all are 1."""


def nothing(_: int) -> None:
    """Keeps nothing, where no sample is needed."""


Translation = Callable[[np.ndarray], np.ndarray]


class LabelReader(Protocol):
    """Reads the labels of the training rows, then fits a target on them. Picklable: each task has a copy."""

    def read(self, rows: Rows, on_bad: OnBadRow) -> tuple[Rows, np.ndarray | None]:
        """The rows with a usable label, and these labels [n, ...]; None where rows have no labels. `on_bad` is called
        for each other row."""
        ...

    def merge(self, later: Any) -> Translation:
        """Merges the state of a later task's reader. Returns a function that converts its labels [n, ...] to this
        reader's."""
        ...

    def fit(self, survey: "Survey[T]", dataset: Dataset, bad: BadRows) -> "tuple[Survey[T], Target]":
        """The rows that can be learned, with their labels as the target has them, and the target. Other rows are
        counted in `bad`. Raises DataError where nothing can be learned."""
        ...


@dataclass(frozen=True)
class ScanPlan(Generic[T]):
    """Columns to read and how to scan their rows. Picklable, as tasks may run in other processes."""

    columns: Sequence[str] | None
    """Columns to read; None for all."""
    labels: LabelReader
    scan: Callable[[Rows], ScannedRows[T]]
    sampled: int = 1
    """Size of the sample."""
    check: Callable[[Rows], object] | None = None
    """Raises RowError for the first row that cannot be used."""


@dataclass(frozen=True)
class Survey(Generic[T]):
    """The usable rows."""

    labels: np.ndarray | None
    """[n, ...]; None if rows have no labels."""
    hashes: np.ndarray
    """The rows' hashes, uint64 [n]."""
    marks: np.ndarray
    """The rows' marks as in `ScannedRows`, [n]."""
    sample: Sample[T]
    unusable: np.ndarray | None = None
    """The labels of the rows that cannot be used for another reason, [m, ...]; None if there are no such labels."""

    def digest(self, target: Target) -> str:
        return digest_of(target, self.labels, self.hashes)

    def divide(self, target: Target, fraction: float | None, seed: int) -> "Division":
        """Sets rows aside for validation, if a fraction is given, and completes the target by the others' labels."""
        keys = Keys(self.labels, self.hashes, self.marks == 0)
        split, is_training = None, np.ones(len(self.hashes), bool)
        if fraction is not None:
            strata = target.strata(self.labels, len(self.hashes))
            split = fit_split(self.hashes, strata, int(strata.max()) + 1, fraction, seed, target.least_together)
            is_training = ~split.is_validation(self.hashes, strata)
        completed = target if self.labels is None else target.completed(self.labels[is_training])
        return Division(completed, split, keys, is_training)

    def take(self, rows: np.ndarray) -> "Survey[T]":
        """The survey of the rows where `rows`, bool [n], is true."""
        return replace(
            self,
            labels=None if self.labels is None else self.labels[rows],
            hashes=self.hashes[rows],
            marks=self.marks[rows],
            sample=self.sample.take(rows),
        )


@dataclass(frozen=True)
class Division:
    """The division of rows into training and validation."""

    target: Target
    """Fitted on the training rows."""
    split: Split | None
    keys: Keys
    """The keys of all rows."""
    is_training: np.ndarray
    """bool [n]."""

    @property
    def rows(self) -> dict[str, int]:
        """Numbers of training and validation rows."""
        train = int(np.sum(self.is_training))
        return {"train": train, "validation": len(self.is_training) - train}

    @property
    def sets(self) -> dict[str, Keys]:
        """The training rows and, if there is a split, the validation rows."""
        sets = {"train": self.keys.take(self.is_training)}
        return sets if self.split is None else sets | {"validation": self.keys.take(~self.is_training)}


class FittedOn(NamedTuple):
    """The result of the first pass over the training rows."""

    input: Input
    division: Division
    digest: str
    """The digest of all rows."""
    texts: Sequence[str] = ()
    """A sample of the training texts."""
    notes: Sequence[str] = ()
    """Further notes on the rows for the user."""


@dataclass(frozen=True)
class _ScannedTask(Generic[T]):
    """The result of one task."""

    reader: LabelReader
    survey: Survey[T]
    bad: BadRows


def _scan_parts(task: tuple[list[SourcePart], int], plan: ScanPlan[T]) -> _ScannedTask[T]:
    """The rows of some parts; none with a hash below the task's floor gets into the sample."""
    parts, floor = task
    sample, reader = Sample[T](plan.sampled, floor), deepcopy(plan.labels)
    unreadable, bad = BadRows(), BadRows()  # the first are found by the thread that reads ahead
    hashes, marks = [np.empty(0, np.uint64)], [np.empty(0, np.uint8)]
    labels, unusable = list[np.ndarray | None](), list[np.ndarray | None]()
    for part in parts:
        for rows in read_part(part, plan.columns, unreadable.add):
            rows, rows_labels = reader.read(rows, bad.add)
            if plan.check is not None:
                valid = valid_rows(rows, plan.check, bad.add)
                rows = rows.take(valid)
                if rows_labels is not None:
                    unusable.append(np.delete(rows_labels, valid, axis=0))
                    rows_labels = rows_labels[valid]
            scanned = plan.scan(rows)
            sample.add(scanned.hashes, scanned.item)
            labels.append(rows_labels)
            hashes.append(scanned.hashes)
            marks.append(np.ones(len(scanned.hashes), np.uint8) if scanned.marks is None else scanned.marks)
    found = Survey(
        joined_labels(labels), np.concatenate(hashes), np.concatenate(marks), sample.pruned(), joined_labels(unusable)
    )
    unreadable.merge(bad)
    return _ScannedTask(reader, found, unreadable)


def take_survey(
    dataset: Dataset, parts: Sequence[SourcePart], plan: ScanPlan[T], mapper: Mapper, bad: BadRows
) -> tuple[Survey[T], Target]:
    """Reads the training source, whose parts are `parts`, once, and fits a target; rows that cannot be used are counted
    in `bad`.

    Raises DataError if nothing can be learned.
    """
    survey, reader = scan_rows(parts, plan, mapper, bad)
    return fit_target(dataset, survey, reader, bad)


def scan_rows(
    parts: Sequence[SourcePart], plan: ScanPlan[T], mapper: Mapper, bad: BadRows
) -> tuple[Survey[T], LabelReader]:
    """Reads the parts once. Returns the usable rows and the reader of their labels; other rows are counted in `bad`."""
    sample, reader = Sample[T](plan.sampled), deepcopy(plan.labels)
    hashes, marks = list[np.ndarray](), list[np.ndarray]()
    labels, unusable = list[np.ndarray | None](), list[np.ndarray | None]()

    tasks = group_parts(parts)
    with_floors = ((task, sample.floor) for task in tasks)
    for scanned in counted(mapper(partial(_scan_parts, plan=plan), with_floors), tasks):
        found, translate = scanned.survey, reader.merge(scanned.reader)
        labels.append(None if found.labels is None else translate(found.labels))
        unusable.append(None if found.unusable is None else translate(found.unusable))
        hashes.append(found.hashes)
        marks.append(found.marks)
        sample.merge(found.sample)
        bad.merge(scanned.bad)
    none, unmarked = np.empty(0, np.uint64), np.empty(0, np.uint8)
    every = Survey(
        joined_labels(labels),
        np.concatenate([none, *hashes]),
        np.concatenate([unmarked, *marks]),
        sample,
        joined_labels(unusable),
    )
    return every, reader


def fit_target(dataset: Dataset, survey: Survey[T], reader: LabelReader, bad: BadRows) -> tuple[Survey[T], Target]:
    """The rows that can be learned, and the target. Raises DataError if nothing can be learned."""
    if not len(survey.hashes):
        uris = listed(dataset.train.all_uris)
        raise TooFewRows(f"{uris} has no rows{' that can be used' if bad.count else ''}")
    return reader.fit(survey, dataset, bad)


def rows_counted(usable: int, unusable: int = 0) -> str:
    """The number of rows, too few, for a message."""
    if unusable:
        return f"{usable:,} of {usable + unusable:,} rows that can be used"
    return "one row" if usable == 1 else f"{usable:,} rows, all equal"


TOO_FEW = "too few to set some aside for validation"


def fewest_rows(dataset: Dataset) -> int:
    """The number of different rows that are needed: one to train on, and one that may be set aside for validation."""
    return 1 if dataset.validation.fraction is None else 2


def refuse_too_few(hashes: np.ndarray, dataset: Dataset) -> None:
    """Raises DataError where too few different rows, with these hashes uint64 [n], are there to set some aside for
    validation."""
    if distinct_rows(hashes, np.zeros(len(hashes), np.int64), 1)[0] < fewest_rows(dataset):
        raise TooFewRows(
            f"{listed(dataset.train.all_uris)} has {rows_counted(len(hashes))}: {TOO_FEW}; add rows, or give "
            "dataset.validation.uri"
        )


def digest_of(target: Target, labels: np.ndarray | None, hashes: np.ndarray) -> str:
    """Identifies rows with these labels [n, ...] and hashes uint64 [n], in this order. Runs keep it."""
    content = target.label_bytes(labels, len(hashes)) + hashes.tobytes()
    return hashlib.blake2b(content, digest_size=16).hexdigest()
