"""Counts duplicates, contradictions and overlap of sets from a hash and a label of each row."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from trainjob.api.data_profile import FEW_ROWS, ClassSizes, SetProfile


@dataclass(frozen=True)
class Keys:
    """The data that is kept of each row of a set."""

    labels: np.ndarray | None
    """Class of each row, int64 [n]; None where rows have no labels."""
    hashes: np.ndarray
    """Hashes of the rows' inputs, uint64 [n]."""
    is_empty: np.ndarray
    """Whether the row has no text, bool [n]."""

    def take(self, rows: np.ndarray) -> Self:
        """The rows where `rows`, bool [n], is true."""
        labels = None if self.labels is None else self.labels[rows]
        return type(self)(labels, self.hashes[rows], self.is_empty[rows])

    @property
    def strata(self) -> np.ndarray:
        """The labels, or 0 for each row without one, int64 [n]."""
        return strata_of(self.labels, len(self.hashes))


def strata_of(labels: np.ndarray | None, rows: int) -> np.ndarray:
    """The labels of so many rows, or 0 for each where there are none, int64 [n]."""
    return np.zeros(rows, np.int64) if labels is None else labels


def joined(some: Iterable[Keys]) -> Keys:
    """The rows of all, in order."""
    every = list(some)
    labels = [each.labels for each in every if each.labels is not None]
    return Keys(
        np.concatenate([np.empty(0, np.int64), *labels]) if labels else None,
        np.concatenate([np.empty(0, np.uint64), *(each.hashes for each in every)]),
        np.concatenate([np.empty(0, bool), *(each.is_empty for each in every)]),
    )


def set_profile(keys: Keys, training: np.ndarray | None) -> SetProfile:
    """`training` are the sorted hashes of the training rows, uint64 [m]; None for the training rows themselves."""
    duplicates, contradictions = _repeated(keys)
    return SetProfile(
        rows=len(keys.hashes),
        duplicates=duplicates,
        contradictions=contradictions,
        empty=int(np.sum(keys.is_empty)),
        in_training=None if training is None else int(np.sum(_is_in(keys.hashes, training))),
    )


def class_sizes(classes: list[str], counts: list[int]) -> ClassSizes:
    """The class sizes of the training rows, from `counts` by class."""
    smallest, largest = int(np.argmin(counts)), int(np.argmax(counts))
    return ClassSizes(
        classes=len(classes),
        rare=int(np.sum(np.array(counts) < FEW_ROWS)),
        smallest=classes[smallest],
        smallest_rows=counts[smallest],
        median_rows=float(np.median(counts)),
        largest=classes[largest],
        largest_rows=counts[largest],
    )


def _repeated(keys: Keys) -> tuple[int, int]:
    """Rows that repeat an earlier input with its label, and rows whose input occurs with several labels."""
    if not len(keys.hashes):
        return 0, 0
    order = np.lexsort((keys.strata, keys.hashes))
    hashes, labels = keys.hashes[order], keys.strata[order]
    is_new_input = np.concatenate([[True], hashes[1:] != hashes[:-1]])
    is_new_pair = is_new_input | np.concatenate([[True], labels[1:] != labels[:-1]])
    starts = np.flatnonzero(is_new_input)
    rows_of_input = np.diff(starts, append=len(hashes))
    labels_of_input = np.add.reduceat(is_new_pair.astype(np.int64), starts)
    return len(hashes) - int(is_new_pair.sum()), int(rows_of_input[labels_of_input > 1].sum())


def _is_in(hashes: np.ndarray, ordered: np.ndarray) -> np.ndarray:
    """Whether each hash is among the `ordered` ones, bool [n]."""
    if not len(ordered):
        return np.zeros(len(hashes), bool)
    return ordered[np.minimum(np.searchsorted(ordered, hashes), len(ordered) - 1)] == hashes
