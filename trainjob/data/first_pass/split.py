"""Selects the validation rows independently of the rows' order and files.

Each training row has a 64-bit hash of its content, keyed by the seed. In each class the rows with the smallest hashes
are validation rows. So the split is one threshold for each class: fitted in one pass that keeps 8 bytes a row, applied
to a stream without looking back. Equal rows have equal hashes and stay on one side, so no row is both trained on and
validated on. A class's share is `fraction` to the nearest row, or to the nearest group of equal rows.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

Side = Literal["train", "validation"]
MUST_GIVE = 2
"""The fewest strata that give validation rows, where rows are compared with those of other strata."""


def hashes(contents: Iterable[bytes], seed: int) -> np.ndarray:
    """The hashes of rows by their contents, uint64 [n]."""
    keyed = hashlib.blake2b(digest_size=8, key=seed.to_bytes(8, "little"))

    def digest(content: bytes) -> bytes:
        copied = keyed.copy()  # quicker than to take in the key again
        copied.update(content)
        return copied.digest()

    return np.frombuffer(b"".join(map(digest, contents)), np.uint64)


@dataclass(frozen=True)
class Split:
    """A row is a validation row if its hash is at most the threshold of its stratum."""

    seed: int
    thresholds: list[int]
    """The threshold of each stratum, in the order of the target's classes; one if rows have no labels."""

    def is_validation(self, row_hashes: np.ndarray, strata: np.ndarray) -> np.ndarray:
        """Whether each row is a validation row, bool [n], by hashes uint64 [n] and strata int64 [n]."""
        return row_hashes <= np.array(self.thresholds, np.uint64)[strata]

    def sides(self, contents: list[bytes], strata: np.ndarray) -> dict[Side, np.ndarray]:
        """Indices of the rows on each side."""
        return sides_of(~self.is_validation(hashes(contents, self.seed), strata))


def sides_of(is_training: np.ndarray) -> dict[Side, np.ndarray]:
    """Indices of the rows on each side; `is_training` is bool [n]."""
    return {"train": np.flatnonzero(is_training), "validation": np.flatnonzero(~is_training)}


def fit_split(
    row_hashes: np.ndarray, strata: np.ndarray, count: int, fraction: float, seed: int, least: int = 1
) -> Split:
    """The split of rows with hashes uint64 [n] and strata int64 [n], of which there are `count`.

    A stratum with fewer than two distinct rows cannot leave one on both sides: all of them train. With `least` above 1,
    no stratum leaves fewer distinct rows than that on a side where it has some, and the fraction is that of all rows.
    """
    order = np.argsort(strata, kind="stable")
    starts = np.searchsorted(strata[order], np.arange(1, count))
    by_stratum = np.split(row_hashes[order], starts)
    if least > 1:
        return Split(seed, _thresholds_of_groups(by_stratum, fraction, least))
    return Split(seed, [_threshold(each, fraction) for each in by_stratum])


def distinct_rows(row_hashes: np.ndarray, strata: np.ndarray, count: int) -> np.ndarray:
    """The number of different rows of each stratum, int64 [count]."""
    order = np.lexsort((row_hashes, strata))
    hashes_in_order, strata_in_order = row_hashes[order], strata[order]
    is_new = np.ones(len(order), bool)
    is_new[1:] = (hashes_in_order[1:] != hashes_in_order[:-1]) | (strata_in_order[1:] != strata_in_order[:-1])
    return np.bincount(strata_in_order[is_new], minlength=count)


def _threshold(row_hashes: np.ndarray, fraction: float) -> int:
    values, counts = np.unique(row_hashes, return_counts=True)
    if len(values) < 2:
        return 0
    # The last group stays for training, so the first is always there for validation.
    rows = np.cumsum(counts)[:-1]
    return int(values[np.argmin(np.abs(rows - fraction * len(row_hashes)))])


def _thresholds_of_groups(by_stratum: list[np.ndarray], fraction: float, least: int) -> list[int]:
    """The thresholds with which each stratum has no row or at least `least` distinct ones on either side.

    Strata give rows in turn, each as many as bring their sum nearest to the fraction: first those that can be on both
    sides, then smaller ones, which give all rows or none. The order within each is that of the smallest hashes. The
    first two give some in any case: a text is to be told from those of another stratum.
    """
    distinct = [np.unique(hashes, return_counts=True) for hashes in by_stratum]
    usable = [number for number, (values, _) in enumerate(distinct) if len(values) >= least]
    usable.sort(key=lambda number: (len(distinct[number][0]) < 2 * least, distinct[number][0][0]))
    thresholds, wanted, given = [0] * len(by_stratum), 0.0, 0
    for turn, number in enumerate(usable):
        values, counts = distinct[number]
        rows = np.concatenate([[0], np.cumsum(counts)])
        choices = np.arange(least, len(values) - least + 1) if len(values) >= 2 * least else np.array([len(values)])
        choices = choices if turn < MUST_GIVE else np.concatenate([[0], choices])
        wanted += fraction * rows[-1]
        chosen = choices[np.argmin(np.abs(given + rows[choices] - wanted))]
        given += int(rows[chosen])
        thresholds[number] = int(values[chosen - 1]) if chosen else 0
    return thresholds
