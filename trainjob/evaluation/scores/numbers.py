"""The scores of a regressor, with their intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from trainjob.api import StrictModel
from trainjob.evaluation.estimates import Estimate
from trainjob.evaluation.mistakes import MAX_WORST_ROWS
from trainjob.evaluation.number_estimates import NumberEstimates, NumberJudge, NumberLead
from trainjob.evaluation.scores.base import WHEN_SCORED, Table, Worst, check_finite
from trainjob.evaluation.scores.estimated import EstimatedScores
from trainjob.formatting import count, plain_number, score

MAX_POINTS = 400
"""Rows whose predictions are drawn beside their labels."""
RANGES = 5


class Residuals(StrictModel):
    """The errors of the rows with labels in a range; ranges have about equally many rows."""

    low: float
    """Smallest label."""
    high: float
    """Largest label."""
    rows: int
    """Number of rows."""
    mean: float
    """Mean of prediction minus label: positive where predictions are too high."""
    absolute: float
    """Mean absolute error."""


@dataclass(frozen=True)
class Scatter:
    """Predictions beside labels, for a square picture."""

    low: float
    high: float
    points: list[tuple[float, float]]
    """Label and prediction of rows, scaled from `low` to `high` to 0 to 1."""


class NumberScores(EstimatedScores):
    """How well a regressor does on a set of rows. Errors are in the unit of the labels."""

    section: ClassVar[str] = "numbers.html.j2"
    caution: ClassVar[str] = "It answers every input with a number, even where it has learned nothing like it."
    hub_types: ClassVar[tuple[str, ...]] = ("rmse", "mae", "r_squared", "spearmanr")

    rows: int
    """Number of rows."""
    loss: float
    """Mean loss, of labels in standard deviations of the training labels."""
    rmse: Estimate
    """Root of the mean squared error."""
    mae: Estimate
    """Mean absolute error."""
    r2: Estimate | None
    """Coefficient of determination: 1 is perfect, 0 is as good as the mean of these labels; null where they are
    equal."""
    spearman: Estimate | None
    """Spearman's rank correlation; 0 where all predictions are equal, null where all labels are."""
    residuals: list[Residuals]
    """Errors by the size of the label."""
    points: list[tuple[float, float]]
    """Label and prediction of up to 400 rows, evenly chosen by label."""

    @property
    def purpose(self) -> str:
        return "predict a number"

    def table(self) -> Table:
        return Table(
            ("label", "rows", "mean error", "MAE"),
            [
                (
                    _range(each.low, each.high),
                    count(each.rows),
                    plain_number(each.mean, 4, "+"),
                    plain_number(each.absolute, 4),
                )
                for each in self.residuals
            ],
        )

    def excerpt(self, set_name: str) -> Table:
        table = self.table()
        return Table(table.headings, table.lines, title=f"By size of the label, on the {set_name} set")

    def tiles(self) -> list[tuple[str, str]]:
        return [
            ("RMSE", score(self.rmse.value)),
            ("MAE", score(self.mae.value)),
            ("R²", score(self.r2 and self.r2.value)),
            ("Spearman", score(self.spearman and self.spearman.value)),
        ]

    @classmethod
    def judge_of(cls, columns: Sequence[pa.ChunkedArray]) -> NumberJudge:
        return NumberJudge()

    @classmethod
    def compared_types(cls) -> tuple[type[NumberEstimates], type[NumberLead]]:
        return NumberEstimates, NumberLead

    @classmethod
    def worst(cls, predictions: pa.Table, set_name: str) -> Worst:
        """The rows with the largest errors."""
        errors = predictions["prediction"].to_numpy() - predictions["label"].to_numpy()
        indices = np.argsort(-np.abs(errors), kind="stable")[:MAX_WORST_ROWS]
        lines = [
            (
                plain_number(line["prediction"]),
                f"off by {plain_number(errors[index], 4, '+')}",
                plain_number(line["label"]),
            )
            for index, line in zip(indices, predictions.take(indices).to_pylist(), strict=True)
        ]
        summary = f"The {len(indices)} of {count(len(errors))} {set_name} rows with the largest errors."
        return Worst("Which rows are off most", summary, indices, lines)

    def scatter(self) -> Scatter:
        values = [value for point in self.points for value in point]
        low, high = min(values), max(values)
        width = (high - low) or 1.0
        return Scatter(low, high, [((x - low) / width, (y - low) / width) for x, y in self.points])


def _range(low: float, high: float) -> str:
    return plain_number(low) if low == high else f"{plain_number(low)} to {plain_number(high)}"


def number_scores(labels: np.ndarray, predicted: np.ndarray, loss_sum: float) -> NumberScores:
    """The scores of predictions float64 [n] for labels float64 [n], in ascending order of the labels.

    Raises Diverged if the loss is not finite.
    """
    check_finite("the loss", loss_sum, WHEN_SCORED)
    return described(NumberJudge().estimates(labels, predicted), labels, predicted, loss_sum, MAX_POINTS)


def described(
    found: NumberEstimates, labels: np.ndarray, predicted: np.ndarray, loss_sum: float, most_points: int
) -> NumberScores:
    """The scores with these estimates and at most this many points, of labels in ascending order."""
    shown = np.unique(np.linspace(0, len(labels) - 1, most_points).astype(np.int64))
    return NumberScores(
        rows=len(labels),
        loss=loss_sum / len(labels),
        **{name: getattr(found, name) for name in NumberEstimates.model_fields},
        residuals=_residuals(labels, predicted),
        points=list(zip(labels[shown].tolist(), predicted[shown].tolist(), strict=True)),
    )


def _residuals(labels: np.ndarray, predicted: np.ndarray) -> list[Residuals]:
    """Equal labels are in one range."""
    edges = np.unique(np.quantile(labels, np.arange(1, RANGES) / RANGES))
    ranges = np.searchsorted(edges, labels, side="left")
    found: list[Residuals] = []
    for number in np.unique(ranges).tolist():
        own, errors = labels[ranges == number], (predicted - labels)[ranges == number]
        found.append(
            Residuals(low=own.min(), high=own.max(), rows=len(own), mean=errors.mean(), absolute=np.abs(errors).mean())
        )
    return found
