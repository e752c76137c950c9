"""All scores of a classifier, from its confusion matrix."""

import math

import numpy as np

from trainjob.api import Spec
from trainjob.errors import UserError


class Average(Spec):
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


class Scores(Spec):
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


def scores(confusion: np.ndarray, loss_sum: float, classes: list[str]) -> Scores:
    """All scores from `confusion`, int64 [C, C] with a row for each true class, and the sum of the rows' losses.

    Raises UserError where the loss is not finite: the model has diverged.
    """
    if not math.isfinite(loss_sum):
        raise UserError(
            "The loss is no longer a finite number: training has diverged. "
            "Lower the learningRate in spec.training.optimizer or set spec.training.gradientClipping"
        )
    rows = int(confusion.sum())
    precision, recall, f1, support = _precision_recall_f1(confusion, average=None)
    return Scores(
        rows=rows,
        loss=loss_sum / rows,
        accuracy=float(confusion.trace() / rows),
        macro=_average(confusion, "macro"),
        weighted=_average(confusion, "weighted"),
        per_class=[
            ClassScores(name=name, rows=int(n), precision=float(p), recall=float(r), f1=float(f))
            for name, n, p, r, f in zip(classes, support, precision, recall, f1, strict=True)
        ],
        confusion=confusion.tolist(),
    )


def _average(confusion: np.ndarray, average: str) -> Average:
    precision, recall, f1, _ = _precision_recall_f1(confusion, average)
    return Average(precision=float(precision), recall=float(recall), f1=float(f1))


def _precision_recall_f1(confusion: np.ndarray, average: str | None):
    from sklearn.metrics import precision_recall_fscore_support

    true, predicted = np.indices(confusion.shape)
    return precision_recall_fscore_support(
        true.ravel(),
        predicted.ravel(),
        labels=range(len(confusion)),
        average=average,
        sample_weight=confusion.ravel(),
        zero_division=0,
    )
