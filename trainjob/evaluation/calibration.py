"""Whether predictions are right as often as their probabilities say."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

BINS = 10
"""The number of bins, which have equal width."""
Z = 1.96
"""Deviations on either side that hold 95% of a normal distribution."""
EDGES = np.arange(BINS + 1) / BINS


@dataclass(frozen=True)
class Bin:
    """The rows whose prediction has a probability in (low, high]."""

    low: float
    high: float
    rows: int
    probability: float
    """The mean; NaN without rows."""
    accuracy: float
    """Fraction of right predictions; NaN without rows."""
    accuracy_low: float
    """Lower end of its 95% interval (Wilson's); NaN without rows."""
    accuracy_high: float


@dataclass(frozen=True)
class Calibration:
    """How well the probability of the predicted class, of any number of classes, matches the accuracy."""

    bins: list[Bin]
    error: float
    """Expected calibration error (ECE): the mean over rows of the difference between accuracy and mean probability of
    the row's bin."""
    error_by_chance: float
    """The approximate difference that chance alone causes on rows with these probabilities if the model is
    calibrated."""
    probability: float
    """Mean over all rows."""
    accuracy: float
    difference_by_chance: float
    """The largest such difference in 95% of sets, if each row were right as often as its probability says."""

    @property
    def bias(self) -> Literal["too high", "too low"] | None:
        """The direction in which probabilities are off on average; None for a difference that chance explains."""
        difference = self.probability - self.accuracy
        if abs(difference) <= self.difference_by_chance:
            return None
        return "too high" if difference > 0 else "too low"


def calibration(probability: np.ndarray, is_right: np.ndarray) -> Calibration:
    """The calibration of predictions with these probabilities, float64 [n] from 0 to 1, n > 0. `is_right`, bool [n],
    marks the correct ones."""
    probability = np.clip(probability, 0, 1)  # rounding may have made them larger
    bin_numbers = np.maximum(np.searchsorted(EDGES, probability) - 1, 0)
    rows = np.bincount(bin_numbers, minlength=BINS)
    probabilities = np.bincount(bin_numbers, probability, BINS)
    right = np.bincount(bin_numbers, is_right, BINS)
    variances = np.bincount(bin_numbers, probability * (1 - probability), BINS)
    return Calibration(
        bins=[_bin(number, int(rows[number]), probabilities[number], right[number]) for number in range(BINS)],
        error=float(np.abs(right - probabilities).sum() / len(probability)),
        # of a normal variable with mean 0 the mean distance from 0 is sqrt(2 / pi) deviations
        error_by_chance=float(np.sqrt(2 / np.pi * variances).sum() / len(probability)),
        probability=float(probability.mean()),
        accuracy=float(is_right.mean()),
        difference_by_chance=float(Z * np.sqrt(variances.sum()) / len(probability)),
    )


def _bin(number: int, rows: int, probabilities: float, right: float) -> Bin:
    low, high = EDGES[number : number + 2].tolist()
    if rows == 0:
        return Bin(low, high, 0, *[float("nan")] * 4)
    return Bin(low, high, rows, float(probabilities / rows), float(right / rows), *wilson(right, rows))


def wilson(right: float, rows: int) -> tuple[float, float]:
    """The 95% interval of a fraction of `rows` rows: Wilson's score interval, which also holds for few rows."""
    share, weight = right / rows, Z * Z / rows
    center = (share + weight / 2) / (1 + weight)
    half = Z / (1 + weight) * float(np.sqrt(share * (1 - share) / rows + weight / (4 * rows)))
    return max(0.0, center - half), min(1.0, center + half)
