"""Counts of rows by true and predicted class."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from trainjob.api import StrictModel


class Confusion(StrictModel):
    """Number of rows by true and predicted class, for each pair of classes that has rows. The three lists are of equal
    length; classes are given by their place in `perClass`."""

    true: list[int]
    """The true class."""
    predicted: list[int]
    """The predicted class."""
    rows: list[int]
    """The number of rows."""

    @classmethod
    def of(cls, true: np.ndarray, predicted: np.ndarray, rows: np.ndarray | None = None) -> Self:
        """Counts pairs of a true and a predicted class, int64 [n]; each counts for `rows` rows, by default one."""
        pairs, pair_numbers = np.unique(np.stack([true, predicted]), axis=1, return_inverse=True)
        counts = np.bincount(pair_numbers.reshape(-1), weights=rows, minlength=pairs.shape[1]).astype(np.int64)
        is_there = counts > 0
        return cls(
            true=pairs[0, is_there].tolist(), predicted=pairs[1, is_there].tolist(), rows=counts[is_there].tolist()
        )

    @classmethod
    def of_matrix(cls, matrix: np.ndarray) -> Self:
        """Takes the counts from a matrix int64 [C, C] with a row for each true class."""
        true, predicted = np.nonzero(matrix)
        return cls.of(true, predicted, matrix[true, predicted])


@dataclass(frozen=True)
class Cell:
    """The rows of one true class for which the model predicted one class."""

    true: str
    predicted: str
    count: int
    share: float
    """Fraction of the rows of the true class."""
    correct: bool

    @property
    def depth(self) -> float:
        """Strength of the cell's color, 0 to 1: the square root of the share makes rare confusions visible."""
        return self.share**0.5
