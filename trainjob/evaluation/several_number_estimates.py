"""Confidence intervals of the scores of several predicted numbers a row, and of one model's lead over another on the
same rows.

Columns have units of their own, so the means over columns are those of scores without a unit: R² and Spearman's
correlation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from trainjob.evaluation.estimates import Estimate, Lead, ScoreEstimates, sorted_rows, with_intervals
from trainjob.evaluation.number_estimates import WITHOUT_UNIT, NumberEstimates, number_estimates, resampled


class SeveralNumbersEstimates(ScoreEstimates):
    """Estimates of the scores of a regressor with several columns."""

    main_field: ClassVar[str] = "r2"

    r2: Estimate
    """The mean of the columns' coefficients of determination, of those whose labels differ."""
    spearman: Estimate
    """The mean of the columns' rank correlations, of those whose labels differ."""

    @property
    def headings(self) -> tuple[str, ...]:
        return tuple(f"Mean {name}" for name in super().headings)

    @property
    def main_name(self) -> str:
        return f"mean {super().main_name}"


class SeveralNumbersLead(Lead):
    """How much better the first regressor is than the second on the same rows."""

    main_field: ClassVar[str] = "r2"

    r2: Estimate
    """Difference in R², the mean of the columns."""
    spearman: Estimate
    """Difference in Spearman's correlation, the mean of the columns."""


@dataclass(frozen=True)
class SeveralNumbersJudge:
    """Compares numbers, float64 [n, L]."""

    names: list[str]

    def values(self, column: pa.ChunkedArray) -> np.ndarray:
        fields = column.combine_chunks()
        return np.stack([fields.field(name).to_numpy() for name in self.names], axis=1)

    def table(
        self, rows: np.ndarray, predicted: np.ndarray, probabilities: np.ndarray | None, tokens: np.ndarray | None
    ) -> pa.Table:
        return pa.table({"row": rows, "prediction": named_columns(predicted, self.names)})

    def estimates(self, labels: np.ndarray, predicted: np.ndarray) -> SeveralNumbersEstimates:
        return self.with_columns(labels, predicted)[0]

    def with_columns(
        self, labels: np.ndarray, predicted: np.ndarray
    ) -> tuple[SeveralNumbersEstimates, list[NumberEstimates]]:
        """The estimates of the means over columns, and those of each column."""
        values, samples = self._resampled(*sorted_rows(labels, predicted))
        columns = [number_estimates(*column) for column in zip(values, samples, strict=True)]
        return SeveralNumbersEstimates(**_means(values, samples)), columns

    def lead(self, labels: np.ndarray, first: np.ndarray, second: np.ndarray) -> SeveralNumbersLead:
        (one, one_samples), (other, other_samples) = (self._resampled(labels, each) for each in (first, second))
        return SeveralNumbersLead(**_means(one - other, one_samples - other_samples))

    def _resampled(self, labels: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The scores of each column [L, 4], and those of the bootstrap samples [L, 4, SAMPLES]: the same samples for
        all columns."""
        values, samples = zip(*map(resampled, labels.T, predicted.T), strict=True)
        return np.stack(values), np.stack(samples)


def named_columns(numbers: np.ndarray, names: Sequence[str]) -> pa.StructArray:
    """Objects of the numbers [n, L] of each row by name."""
    return pa.StructArray.from_arrays([pa.array(np.ascontiguousarray(each)) for each in numbers.T], list(names))


def _means(values: np.ndarray, samples: np.ndarray) -> dict[str, Estimate]:
    """The estimates of the means over columns, of values [L, 4] and samples [L, 4, SAMPLES], without the columns in
    which they are not defined. Raises DataError where these are all."""
    mean, means = (np.ma.masked_invalid(each[:, 2:]).mean(axis=0).filled(np.nan) for each in (values, samples))
    return with_intervals(mean, means, WITHOUT_UNIT)
