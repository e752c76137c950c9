"""One pass over the training rows that keeps a label and a hash of each row, and a sample of bounded size.

Each task surveys some of the rows; the result does not depend on how the rows are divided among tasks.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from trainjob.api import Source
from trainjob.data.first_pass.profile import Keys, strata_of
from trainjob.data.first_pass.sample import Sample
from trainjob.data.first_pass.split import Split, fit_split
from trainjob.data.read.bad_rows import BadRows, TooFewRows, sound_rows
from trainjob.data.read.chunking import Mapper, group_parts
from trainjob.data.read.counted_reading import counted, read_part
from trainjob.data.read.labels import label_errors, label_numbers
from trainjob.data.read.rows import Rows, SourcePart
from trainjob.errors import listed
from trainjob.kinds.kind import Input, Target

T = TypeVar("T")


@dataclass(frozen=True)
class ScannedRows(Generic[T]):
    """The content hashes and sampled items of some rows."""

    hashes: np.ndarray
    """uint64 [n]."""
    item: Callable[[int], T]
    """Returns the item that a sample keeps for the row at an index."""
    marks: np.ndarray | None = None
    """uint8 or uint16 [n]: 0 for a row without text, otherwise 1 or, for an image, what `fit_images` says. None where
    all are 1."""


def nothing(_: int) -> None:
    """Keeps nothing, where no sample is needed."""


@dataclass(frozen=True)
class ScanPlan(Generic[T]):
    """Columns to read and how to scan their rows. Picklable, as tasks may run in other processes."""

    columns: Sequence[str] | None
    """Columns to read; None for all."""
    label: str | None
    """Column of the labels; None if rows have none."""
    scan: Callable[[Rows], ScannedRows[T]]
    sampled: int = 1
    """Size of the sample."""
    check: Callable[[Rows], object] | None = None
    """Raises RowError for the first row that cannot be used."""


@dataclass(frozen=True)
class Survey(Generic[T]):
    """The usable rows."""

    classes: list[str]
    """Sorted; includes classes without usable rows. Empty if rows have no labels."""
    labels: np.ndarray | None
    """Class of each row, int64 [n]; None if rows have no labels."""
    hashes: np.ndarray
    """uint64 [n]."""
    marks: np.ndarray
    """As in `ScannedRows`, [n]."""
    sample: Sample[T]
    unusable: np.ndarray
    """Unusable rows of each stratum, int64 [strata]."""

    @property
    def strata(self) -> np.ndarray:
        """The labels, or 0 for each row without one, int64 [n]: rows are set aside within each stratum."""
        return strata_of(self.labels, len(self.hashes))

    @property
    def digest(self) -> str:
        return digest_of(self.classes, self.strata, self.hashes)

    def divide(self, fraction: float | None, seed: int) -> "Division":
        """Sets rows aside for validation, if a fraction is given."""
        keys = Keys(self.labels, self.hashes, self.marks == 0)
        if fraction is None:
            return Division(None, keys, np.ones(len(self.hashes), bool))
        split = fit_split(self.hashes, self.strata, len(self.unusable), fraction, seed)
        return Division(split, keys, ~split.is_validation(self.hashes, self.strata))

    def take(self, rows: np.ndarray) -> "Survey[T]":
        """The survey of the rows where `rows`, bool [n], is true."""
        return replace(
            self,
            labels=None if self.labels is None else self.labels[rows],
            hashes=self.hashes[rows],
            marks=self.marks[rows],
            sample=self.sample.take(rows),
        )

    def without(self, classes: np.ndarray) -> "Survey[T]":
        """The survey without the rows of the classes where `classes`, bool [C], is true."""
        labels = self.strata
        kept, numbers = ~classes[labels], np.cumsum(~classes) - 1
        return Survey(
            [name for name, is_out in zip(self.classes, classes, strict=True) if not is_out],
            numbers[labels[kept]],
            self.hashes[kept],
            self.marks[kept],
            self.sample.take(kept),
            self.unusable[~classes],
        )


@dataclass(frozen=True)
class Division:
    """The division of rows into training and validation."""

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
    def class_counts(self) -> list[int]:
        """Training rows of each class; empty if rows have no labels."""
        return [] if self.keys.labels is None else np.bincount(self.keys.labels[self.is_training]).tolist()

    @property
    def sets(self) -> dict[str, Keys]:
        """The training rows and, if there is a split, the validation rows."""
        sets = {"train": self.keys.take(self.is_training)}
        return sets if self.split is None else sets | {"validation": self.keys.take(~self.is_training)}


class FittedOn(NamedTuple):
    """The result of the first pass over the training rows."""

    input: Input
    target: Target
    division: Division
    digest: str
    """The digest of all rows."""
    texts: Sequence[str] = ()
    """A sample of the training texts."""
    notes: Sequence[str] = ()
    """Further notes on the rows for the user."""
    small: Sequence[str] = ()
    """Classes that were left out because they have too few rows."""


@dataclass(frozen=True)
class _Share(Generic[T]):
    """A task's share of the survey."""

    names: list[str]
    labels: np.ndarray | None
    """Index of each row's label in `names`, int64 [n]; None where rows have no labels."""
    hashes: np.ndarray
    marks: np.ndarray
    sample: Sample[T]
    unusable: np.ndarray
    """Unusable rows of each stratum, int64 [strata]."""
    bad: BadRows


def _scan_parts(task: tuple[list[SourcePart], int], plan: ScanPlan[T]) -> _Share[T]:
    """The rows of some parts; none with a hash below the task's floor gets into the sample."""
    parts, floor = task
    sample, numbers, bad = Sample[T](plan.sampled, floor), dict[str, int](), BadRows()
    labels, hashes, marks = [np.empty(0, np.int64)], [np.empty(0, np.uint64)], [np.empty(0, np.uint8)]
    unusable = [np.empty(0, np.int64)]
    for part in parts:
        for rows in read_part(part, plan.columns, bad.add):
            rows, own = _labelled(rows, plan.label, numbers, bad)
            if plan.check is not None:
                sound = sound_rows(rows, plan.check, bad.add)
                unusable.append(np.delete(own, sound))
                rows, own = rows.take(sound), own[sound]
            scanned = plan.scan(rows)
            sample.add(scanned.hashes, scanned.item)
            labels.append(own)
            hashes.append(scanned.hashes)
            marks.append(np.ones(len(scanned.hashes), np.uint8) if scanned.marks is None else scanned.marks)
    found = None if plan.label is None else np.concatenate(labels)
    lost = np.bincount(np.concatenate(unusable), minlength=1 if plan.label is None else len(numbers))
    return _Share(list(numbers), found, np.concatenate(hashes), np.concatenate(marks), sample.pruned(), lost, bad)


def _labelled(rows: Rows, label: str | None, numbers: dict[str, int], bad: BadRows) -> tuple[Rows, np.ndarray]:
    """The rows that have a label, and its number, int64 [n]; all rows, and 0 for each, where there are no labels."""
    if label is None:
        return rows, strata_of(None, len(rows.table))
    found = label_numbers(rows, label, numbers)
    for error in label_errors(rows, label, np.flatnonzero(found < 0)):
        bad.add(error)
    return rows.take(np.flatnonzero(found >= 0)), found[found >= 0]


def take_survey(
    source: Source, parts: Sequence[SourcePart], plan: ScanPlan[T], mapped: Mapper, bad: BadRows
) -> Survey[T]:
    """Reads the rows of `source`, whose parts are `parts`, once; unusable rows are counted in `bad`.

    Raises DataError if there are no usable rows.
    """
    sample, numbers = Sample[T](plan.sampled), dict[str, int]()
    labels, hashes, marks = list[np.ndarray](), list[np.ndarray](), list[np.ndarray]()
    unusable = Counter[int]({0: 0})

    tasks = group_parts(parts)
    with_floors = ((task, sample.floor) for task in tasks)
    for share in counted(mapped(partial(_scan_parts, plan=plan), with_floors), tasks):
        order = np.array([numbers.setdefault(name, len(numbers)) for name in share.names], np.int64)
        if share.labels is not None:
            labels.append(order[share.labels])
        hashes.append(share.hashes)
        marks.append(share.marks)
        sample.merge(share.sample)
        strata = [0] if share.labels is None else order.tolist()
        unusable.update(dict(zip(strata, share.unusable.tolist(), strict=True)))
        bad.merge(share.bad)
    if not any(map(len, hashes)):
        raise TooFewRows(f"{listed(source.all_uris)} holds no rows{' that can be used' if bad.count else ''}")
    classes = sorted(numbers)
    order = np.array([numbers[name] for name in classes], np.int64)
    return Survey(
        classes,
        None if plan.label is None else np.argsort(order)[np.concatenate(labels)],
        np.concatenate(hashes),
        np.concatenate(marks),
        sample,
        np.array([unusable[number] for number in ([0] if plan.label is None else order.tolist())], np.int64),
    )


def digest_of(classes: list[str], strata: np.ndarray, hashes: np.ndarray) -> str:
    """Identifies rows of these classes, strata int64 [n] and hashes uint64 [n], in this order. Runs keep it: where rows
    have no labels, it is what it always was, as of one class without a name."""
    names = json.dumps(classes or [""]).encode()
    return hashlib.blake2b(names + strata.tobytes() + hashes.tobytes(), digest_size=16).hexdigest()
