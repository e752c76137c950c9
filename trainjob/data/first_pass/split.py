"""Selects the validation rows independently of the rows' order and files.

Each training row has a 64-bit hash of its content, keyed by the seed. In each class the rows with the smallest hashes
are validation rows. So the split is one threshold for each class: fitted in one pass that keeps 8 bytes a row, applied
to a stream without looking back. Equal rows have equal hashes and stay on one side: none is trained on and validated
on. A class's share is `fraction` to the nearest row, or to the nearest group of equal rows.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

Side = Literal["train", "validation"]


def hashes(contents: Iterable[bytes], seed: int) -> np.ndarray:
    """uint64 [n]."""
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
        """bool [n] of hashes uint64 [n] and strata int64 [n]."""
        return row_hashes <= np.array(self.thresholds, np.uint64)[strata]

    def sides(self, contents: list[bytes], strata: np.ndarray) -> dict[Side, np.ndarray]:
        """Indices of the rows on each side."""
        is_validation = self.is_validation(hashes(contents, self.seed), strata)
        return {"train": np.flatnonzero(~is_validation), "validation": np.flatnonzero(is_validation)}


def fit_split(row_hashes: np.ndarray, strata: np.ndarray, count: int, fraction: float, seed: int) -> Split:
    """The split of rows with hashes uint64 [n] and strata int64 [n], of which there are `count`.

    A stratum with fewer than two distinct rows cannot leave one on both sides: all of them train.
    """
    order = np.argsort(strata, kind="stable")
    starts = np.searchsorted(strata[order], np.arange(1, count))
    return Split(seed, [_threshold(each, fraction) for each in np.split(row_hashes[order], starts)])


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
