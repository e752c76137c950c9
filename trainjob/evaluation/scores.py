"""All scores of a classifier, from its confusion matrix."""

import math

import numpy as np

from trainjob.api import StrictModel
from trainjob.errors import UserError


class Average(StrictModel):
    """Precision, recall and F1, of one class or averaged over classes; 0 where nothing was predicted or is there."""

    precision: float
    """Share of the predicted rows that are right."""
    recall: float
    """Share of the class's rows that are found."""
    f1: float
    """Harmonic mean of both."""


class ClassScores(Average):
    """How well one class is told from the others."""

    name: str
    """The class."""
    rows: int
    """Rows that truly are of this class."""


class Scores(StrictModel):
    """How well a classifier does on a set of rows."""

    rows: int
    """Rows scored."""
    loss: float
    """Mean loss."""
    accuracy: float
    """Share of rows whose class is predicted."""
    macro: Average
    """Mean over classes."""
    weighted: Average
    """Mean over classes, weighted by their rows."""
    per_class: list[ClassScores]
    """Scores of each class."""
    confusion: list[list[int]]
    """Rows by true class (outer) and predicted class (inner)."""

    def as_metrics(self, part: str) -> dict[str, float]:
        """By the names of metrics, such as `validation_loss` for the part `validation`; the averages are macro ones."""
        return {
            f"{part}_loss": self.loss,
            f"{part}_accuracy": self.accuracy,
            f"{part}_precision": self.macro.precision,
            f"{part}_recall": self.macro.recall,
            f"{part}_f1": self.macro.f1,
        }


def scores(confusion: np.ndarray, loss_sum: float, classes: list[str]) -> Scores:
    """All scores from `confusion`, int64 [C, C] with a row for each true class, and the sum of the rows' losses.

    Raises UserError where the loss is not finite: the model has diverged.
    """
    if not math.isfinite(loss_sum):
        raise UserError(
            "The loss is no longer a finite number: training has diverged. "
            "Lower the learningRate in spec.training.optimizer or set spec.training.gradientClipping"
        )
    support = confusion.sum(axis=1)
    right = confusion.diagonal()
    table = np.stack(
        [
            _ratio(right, confusion.sum(axis=0)),
            _ratio(right, support),
            _ratio(2 * right, support + confusion.sum(axis=0)),
        ],
        axis=1,
    )
    rows = int(support.sum())
    return Scores(
        rows=rows,
        loss=loss_sum / rows,
        accuracy=float(right.sum() / rows),
        macro=Average(**_named(table.mean(axis=0))),
        weighted=Average(**_named(support @ table / rows)),
        per_class=[
            ClassScores(name=name, rows=int(n), **_named(line))
            for name, n, line in zip(classes, support, table, strict=True)
        ],
        confusion=confusion.tolist(),
    )


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """0 where `whole` is 0."""
    return np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)


def _named(line: np.ndarray) -> dict[str, float]:
    return dict(zip(("precision", "recall", "f1"), line.tolist(), strict=True))
