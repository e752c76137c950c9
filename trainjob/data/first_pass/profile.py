"""Counts duplicates, contradictions and overlap of sets from a hash and a label of each row."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from trainjob.api.data_profile import SetProfile


@dataclass(frozen=True)
class Keys:
    """The data that is kept of each row of a set."""

    labels: np.ndarray | None
    """[n, ...]; None where rows have no labels."""
    hashes: np.ndarray
    """Hashes of the rows' inputs, uint64 [n]."""
    is_empty: np.ndarray
    """Whether the row has no text, bool [n]."""

    def take(self, rows: np.ndarray) -> Self:
        """The rows where `rows`, bool [n], is true."""
        labels = None if self.labels is None else self.labels[rows]
        return type(self)(labels, self.hashes[rows], self.is_empty[rows])


def joined_labels(some: Iterable[np.ndarray | None]) -> np.ndarray | None:
    """The labels of all, in order; None where nothing has labels."""
    labels = [each for each in some if each is not None]
    return np.concatenate(labels) if labels else None


def joined_keys(some: Iterable[Keys]) -> Keys:
    """The rows of all, in order."""
    every = list(some)
    return Keys(
        joined_labels(each.labels for each in every),
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


def _repeated(keys: Keys) -> tuple[int, int]:
    """Rows that repeat an earlier input with its label, and rows whose input occurs with several labels."""
    if not len(keys.hashes):
        return 0, 0
    labels = np.zeros(len(keys.hashes)) if keys.labels is None else keys.labels
    if labels.ndim > 1 or labels.dtype == object:
        _, labels = np.unique(labels, axis=0 if labels.ndim > 1 else None, return_inverse=True)
    order = np.lexsort((labels, keys.hashes))
    hashes = keys.hashes[order]
    is_new_input = np.concatenate([[True], hashes[1:] != hashes[:-1]])
    is_new_pair = is_new_input.copy()
    is_new_pair[1:] |= labels[order[1:]] != labels[order[:-1]]
    starts = np.flatnonzero(is_new_input)
    rows_of_input = np.diff(starts, append=len(hashes))
    labels_of_input = np.add.reduceat(is_new_pair.astype(np.int64), starts)
    return len(hashes) - int(is_new_pair.sum()), int(rows_of_input[labels_of_input > 1].sum())


def _is_in(hashes: np.ndarray, ordered: np.ndarray) -> np.ndarray:
    """Whether each hash is among the `ordered` ones, bool [n]."""
    if not len(ordered):
        return np.zeros(len(hashes), bool)
    return ordered[np.minimum(np.searchsorted(ordered, hashes), len(ordered) - 1)] == hashes
