"""The scores of a regressor that predicts several numbers a row."""

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa

from trainjob.api import StrictModel
from trainjob.errors import listed
from trainjob.evaluation.estimates import Estimate
from trainjob.evaluation.mistakes import MAX_WORST_ROWS
from trainjob.evaluation.scores.base import WHEN_SCORED, Measure, Table, Worst, check_finite
from trainjob.evaluation.scores.estimated import EstimatedScores
from trainjob.evaluation.scores.numbers import MAX_POINTS, NumberScores, described
from trainjob.evaluation.several_number_estimates import (
    SeveralNumbersEstimates,
    SeveralNumbersJudge,
    SeveralNumbersLead,
)
from trainjob.formatting import count, plain_number, score

POINTS_OF_ALL = 4 * MAX_POINTS
MAX_COLUMNS_DRAWN = 12
"""With more columns, the report draws the predictions of those with the lowest R²."""
COLUMNS_OF_ROW = 6
"""The most columns that are shown of one of the worst rows: those that are off most."""


class ColumnScores(StrictModel):
    """How well the numbers of one column are predicted."""

    name: str
    """Name of the column."""
    scores: NumberScores
    """Errors are in the unit of the column; its loss is that of the column alone."""


class SeveralNumbersScores(EstimatedScores):
    """How well a regressor with several columns does on a set of rows."""

    section: ClassVar[str] = "several_numbers.html.j2"
    caution: ClassVar[str] = NumberScores.caution
    stored_columns: ClassVar[tuple[str, ...]] = ("row", "label", "prediction", "error")
    hub_types: ClassVar[tuple[str, ...]] = ("r_squared", "spearmanr")

    rows: int
    """Number of rows."""
    loss: float
    """Mean loss, of labels in standard deviations of their column's training labels; the mean of the columns."""
    r2: Estimate
    """The mean of the columns' coefficients of determination, of those whose labels differ."""
    spearman: Estimate
    """The mean of the columns' rank correlations, of those whose labels differ."""
    rmse: float
    """Root of the mean squared error in standard deviations of the column's training labels, the mean of the
    columns."""
    mae: float
    """Mean absolute error in standard deviations of the column's training labels, the mean of the columns."""
    columns: list[ColumnScores]
    """Scores of each column."""

    @property
    def purpose(self) -> str:
        return f"predict {count(len(self.columns))} numbers"

    def as_metrics(self, set_name: str) -> dict[str, float]:
        """Means of the columns; errors are in standard deviations of the training labels."""
        return super().as_metrics(set_name) | {f"{set_name}_rmse": self.rmse, f"{set_name}_mae": self.mae}

    def measures(self) -> list[Measure]:
        errors = [
            Measure("rmse", "Mean RMSE in standard deviations", self.rmse),
            Measure("mae", "Mean MAE in standard deviations", self.mae),
        ]
        return [*super().measures(), *errors]

    def tiles(self) -> list[tuple[str, str]]:
        return [
            ("Mean R²", score(self.r2.value)),
            ("Mean Spearman", score(self.spearman.value)),
            ("Mean RMSE", f"{self.rmse:.4g} SD"),
            ("Mean MAE", f"{self.mae:.4g} SD"),
        ]

    def headline(self) -> str:
        errors = f"RMSE {self.rmse:.4g} and MAE {self.mae:.4g} in standard deviations"
        left_out = f"; {self.left_out}" if self.left_out else ""
        return f"{super().headline()}, mean {errors}{left_out}"

    @property
    def left_out(self) -> str:
        """A sentence that names the columns without R² and rank correlation; empty if there are none."""
        names = [each.name for each in self.columns if each.scores.r2 is None]
        return f"R² and Spearman leave out {listed(names)}, where all labels are equal" if names else ""

    def table(self) -> Table:
        lines: list[tuple[str, ...]] = [
            (
                each.name,
                *each.scores.estimates.cells(),
            )
            for each in self.columns
        ]
        return Table(("column", "RMSE", "MAE", "R²", "Spearman"), lines)

    def excerpt(self, set_name: str) -> Table:
        table = self.table()
        return Table(table.headings, table.lines, title=f"By column, in its unit, on the {set_name} set")

    @classmethod
    def judge_of(cls, columns: Sequence[pa.ChunkedArray]) -> SeveralNumbersJudge:
        return SeveralNumbersJudge([field.name for field in columns[0].type])

    @classmethod
    def compared_types(cls) -> tuple[type[SeveralNumbersEstimates], type[SeveralNumbersLead]]:
        return SeveralNumbersEstimates, SeveralNumbersLead

    @classmethod
    def worst(cls, predictions: pa.Table, set_name: str) -> Worst:
        """The rows with the largest errors in standard deviations: the root of their mean square over columns."""
        judge = cls.judge_of([predictions["error"]])
        errors, predicted, labels = (judge.values(predictions[name]) for name in ("error", "prediction", "label"))
        off = np.sqrt((errors**2).mean(axis=1))
        indices = np.argsort(-off, kind="stable")[:MAX_WORST_ROWS]
        lines: list[tuple[str, str, str]] = []
        for index in indices.tolist():
            shown = np.argsort(-np.abs(errors[index]), kind="stable")[:COLUMNS_OF_ROW].tolist()
            lines.append(
                (
                    ", ".join(f"{judge.names[each]} {plain_number(predicted[index, each])}" for each in shown),
                    f"off by {plain_number(off[index], 4)} standard deviations",
                    ", ".join(f"{judge.names[each]} {plain_number(labels[index, each])}" for each in shown),
                )
            )
        summary = (
            f"The {len(indices)} of {count(len(off))} {set_name} rows with the largest errors, in standard deviations "
            "of the training labels: the root of their mean square over the columns. Of each row, the column that is "
            "off most comes first."
        )
        return Worst("Which rows are off most", summary, indices, lines)

    def drawn(self) -> list[ColumnScores]:
        """All columns in their order; of too many, the MAX_COLUMNS_DRAWN with the lowest R², the worst first."""
        if len(self.columns) <= MAX_COLUMNS_DRAWN:
            return self.columns
        return sorted(self.columns, key=_r2)[:MAX_COLUMNS_DRAWN]


def _r2(column: ColumnScores) -> float:
    """Infinite where it is not defined."""
    return column.scores.r2.value if column.scores.r2 else math.inf


def several_number_scores(
    names: Sequence[str], std: np.ndarray, labels: np.ndarray, predicted: np.ndarray, loss_sums: np.ndarray
) -> SeveralNumbersScores:
    """The scores of predictions float64 [n, L] for labels float64 [n, L] of columns with these names. `std` [L] are the
    standard deviations of the training labels, and `loss_sums` [L] the sums of the losses.

    Raises Diverged if a loss is not finite.
    """
    check_finite("the loss", float(loss_sums.sum()), WHEN_SCORED)
    found, of_columns = SeveralNumbersJudge(list(names)).with_columns(labels, predicted)
    columns: list[ColumnScores] = []
    for index, name in enumerate(names):
        order = np.lexsort((predicted[:, index], labels[:, index]))
        of_column = labels[order, index], predicted[order, index], float(loss_sums[index])
        points = min(MAX_POINTS, POINTS_OF_ALL // len(names))
        columns.append(ColumnScores(name=name, scores=described(of_columns[index], *of_column, points)))
    return SeveralNumbersScores(
        rows=len(labels),
        loss=float(loss_sums.mean()) / len(labels),
        r2=found.r2,
        spearman=found.spearman,
        rmse=float(np.mean([each.rmse.value for each in of_columns] / std)),
        mae=float(np.mean([each.mae.value for each in of_columns] / std)),
        columns=columns,
    )
