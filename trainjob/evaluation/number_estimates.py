"""How sure the scores of predicted numbers are, and whether one model is better than another on the same rows.

Ranks for Spearman's correlation are those among all rows, not among the rows of a sample.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from trainjob.evaluation.estimates import Estimate, Lead, ScoreEstimates, bootstrapped, with_intervals

ROUNDING = 1e-12


class NumberEstimates(ScoreEstimates):
    """Estimates of a regressor's scores."""

    headings: ClassVar[tuple[str, ...]] = ("RMSE", "MAE", "R²", "Spearman")
    main: ClassVar[str] = "RMSE"

    rmse: Estimate
    """Root of the mean squared error, in the unit of the labels."""
    mae: Estimate
    """Mean absolute error, in the unit of the labels."""
    r2: Estimate
    """Coefficient of determination: 1 is perfect, 0 is as good as the mean of these labels."""
    spearman: Estimate
    """Spearman's rank correlation; 0 where all predictions or all labels are equal."""

    @property
    def main_value(self) -> float:
        return self.rmse.value


class NumberLead(Lead):
    """How much smaller the errors of the first regressor are than those of the second on the same rows."""

    rmse: Estimate
    """RMSE of the second one minus that of the first."""
    mae: Estimate
    """MAE of the second one minus that of the first."""

    @property
    def main(self) -> Estimate:
        return self.rmse


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
        terms = _terms(labels, predicted)
        values, samples = _scores(terms.sum(axis=1)), _scores(bootstrapped(terms))
        return NumberEstimates(**with_intervals(values, samples, ("rmse", "mae", "r2", "spearman")))

    def lead(self, labels: np.ndarray, first: np.ndarray, second: np.ndarray) -> NumberLead:
        terms = [_terms(labels, each) for each in (first, second)]
        one, other = (_scores(each.sum(axis=1)) for each in terms)
        drawn = bootstrapped(np.concatenate(terms))
        one_drawn, other_drawn = _scores(drawn[: len(terms[0])]), _scores(drawn[len(terms[0]) :])
        return NumberLead(**with_intervals((other - one)[:2], (other_drawn - one_drawn)[:2], ("rmse", "mae")))


def _terms(labels: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """The terms that are summed over rows, [10, n]: one, squared and absolute error, the label and its square, the
    ranks of label and prediction, their squares and their product. Label and ranks are centered."""
    error, centered = predicted - labels, labels - (labels.mean() if np.ptp(labels) > 0 else labels)
    ranks, others = (_ranks(each) - (len(labels) - 1) / 2 for each in (labels, predicted))
    ones = np.ones(len(labels))
    return np.stack(
        [ones, error**2, np.abs(error), centered, centered**2, ranks, others, ranks**2, others**2, ranks * others]
    )


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 0, equal values with the mean of theirs, float64 [n]."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts + 1) / 2)[inverse]


def _scores(sums: np.ndarray) -> np.ndarray:
    """RMSE, MAE, R² and Spearman's correlation, [4, ...], of such sums [10, ...]."""
    rows, squares, absolute, labels, label_squares, ranks, others, rank_squares, other_squares, products = sums
    spread = _variation(labels, label_squares, rows)
    of_ranks, of_others = _variation(ranks, rank_squares, rows), _variation(others, other_squares, rows)
    unexplained = _ratio(squares, spread, otherwise=np.sign(squares))
    correlation = _ratio(products - ranks * others / rows, np.sqrt(of_ranks * of_others), otherwise=0 * squares)
    return np.stack([np.sqrt(squares / rows), absolute / rows, 1 - unexplained, np.clip(correlation, -1, 1)])


def _variation(total: np.ndarray, squares: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The sum of squared deviations from the mean; 0 where only rounding is left."""
    found = squares - total**2 / rows
    return np.where(found > ROUNDING * squares, found, 0.0)


def _ratio(numerator: np.ndarray, denominator: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """The ratios; `otherwise` where the denominator is 0."""
    return np.divide(numerator, denominator, out=np.array(otherwise, np.float64), where=np.asarray(denominator > 0))
