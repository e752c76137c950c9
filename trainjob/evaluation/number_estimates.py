"""Confidence intervals of the scores of predicted numbers, and of one model's lead over another on the same rows.

Ranks for Spearman's correlation are those among all rows, not among the rows of a sample.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from trainjob.evaluation.correlation import centered, centered_ranks, correlation, moments, ratio, variation
from trainjob.evaluation.estimates import (
    Estimate,
    Lead,
    ScoreEstimates,
    bootstrapped,
    sorted_rows,
    where_defined,
    with_intervals,
)

ERRORS, WITHOUT_UNIT = ("rmse", "mae"), ("r2", "spearman")


class NumberEstimates(ScoreEstimates):
    """Estimates of a regressor's scores."""

    main_field: ClassVar[str] = "rmse"
    errors: ClassVar[tuple[str, ...]] = ERRORS

    rmse: Estimate
    """Root of the mean squared error, in the unit of the labels."""
    mae: Estimate
    """Mean absolute error, in the unit of the labels."""
    r2: Estimate | None
    """Coefficient of determination: 1 is perfect, 0 is as good as the mean of these labels; null where they are
    equal."""
    spearman: Estimate | None
    """Spearman's rank correlation; 0 where all predictions are equal, null where all labels are."""


class NumberLead(Lead):
    """How much smaller the errors of the first regressor are than those of the second on the same rows."""

    main_field: ClassVar[str] = "rmse"

    rmse: Estimate
    """RMSE of the second one minus that of the first."""
    mae: Estimate
    """MAE of the second one minus that of the first."""


@dataclass(frozen=True)
class NumberJudge:
    """Compares numbers, float64 [n]."""

    def values(self, column: pa.ChunkedArray) -> np.ndarray:
        return column.to_numpy().astype(np.float64)

    def table(
        self, rows: np.ndarray, predicted: np.ndarray, probabilities: np.ndarray | None, tokens: np.ndarray | None
    ) -> pa.Table:
        return pa.table({"row": rows, "prediction": predicted})

    def estimates(self, labels: np.ndarray, predicted: np.ndarray) -> NumberEstimates:
        return number_estimates(*resampled(*sorted_rows(labels, predicted)))

    def lead(self, labels: np.ndarray, first: np.ndarray, second: np.ndarray) -> NumberLead:
        (one, one_drawn), (other, other_drawn) = (resampled(labels, each) for each in (first, second))
        return NumberLead(**with_intervals((other - one)[:2], (other_drawn - one_drawn)[:2], ERRORS))


def number_estimates(values: np.ndarray, samples: np.ndarray) -> NumberEstimates:
    """The estimates of scores [4] and their bootstrap samples [4, SAMPLES]."""
    errors, others = (values[:2], samples[:2], ERRORS), (values[2:], samples[2:], WITHOUT_UNIT)
    return NumberEstimates(**with_intervals(*errors), **where_defined(*others))


def resampled(labels: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The scores of all rows [4], and those of each bootstrap sample [4, SAMPLES], NaN where they are not defined; the
    samples of equally many rows are the same."""
    terms = _terms(labels, predicted)
    return _scores(terms.sum(axis=1)), _scores(bootstrapped(terms))


def _terms(labels: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """The terms that are summed over rows, [10, n]: squared and absolute error, the label and its square, and the
    moments of the ranks of label and prediction."""
    error, label = predicted - labels, centered(labels)
    ranks = moments(centered_ranks(labels), centered_ranks(predicted))
    return np.concatenate([[error**2, np.abs(error), label, label**2], ranks])


def _scores(sums: np.ndarray) -> np.ndarray:
    """RMSE, MAE, R² and Spearman's correlation, [4, ...], of such sums [10, ...]."""
    squares, absolute, labels, label_squares, rows = sums[:5]
    spread = variation(labels, label_squares, rows)
    unexplained = ratio(squares, spread, otherwise=np.full_like(squares, np.nan))
    return np.stack([np.sqrt(squares / rows), absolute / rows, 1 - unexplained, correlation(sums[4:])])
