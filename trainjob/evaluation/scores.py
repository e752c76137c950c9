"""All scores of a classifier, from its confusion matrix, and of a language model."""

import math
from typing import Self

import numpy as np
from pydantic import field_validator

from trainjob.api import StrictModel
from trainjob.errors import Diverged


class Average(StrictModel):
    """Precision, recall and F1 of one class or averaged over classes; each is 0 where its denominator is 0."""

    precision: float
    """Fraction of the rows with this prediction that are of the class."""
    recall: float
    """Fraction of the rows of the class that are predicted as such."""
    f1: float
    """Harmonic mean of precision and recall."""


class ClassScores(Average):
    """How well one class is distinguished from the others."""

    name: str
    """Name of the class."""
    rows: int
    """Rows whose label is this class."""


class Confusion(StrictModel):
    """Number of rows by true and predicted class, for each pair of classes that has rows. The three lists are of equal
    length; classes are given by their place in `perClass`."""

    true: list[int]
    """The true class."""
    predicted: list[int]
    """The predicted class."""
    rows: list[int]
    """How many rows there are."""

    @classmethod
    def of(cls, true: np.ndarray, predicted: np.ndarray, rows: np.ndarray | None = None) -> Self:
        """Of classes int64 [n], which may repeat, and how many rows each pair stands for, by default one."""
        pairs, places = np.unique(np.stack([true, predicted]), axis=1, return_inverse=True)
        counts = np.bincount(places.reshape(-1), weights=rows, minlength=pairs.shape[1]).astype(np.int64)
        is_there = counts > 0
        return cls(
            true=pairs[0, is_there].tolist(), predicted=pairs[1, is_there].tolist(), rows=counts[is_there].tolist()
        )

    @classmethod
    def of_matrix(cls, matrix: np.ndarray) -> Self:
        """Of a matrix int64 [C, C] with a row for each true class."""
        true, predicted = np.nonzero(matrix)
        return cls.of(true, predicted, matrix[true, predicted])


class Scores(StrictModel):
    """How well a classifier does on a set of rows."""

    rows: int
    """Number of rows."""
    loss: float
    """Mean loss."""
    accuracy: float
    """Fraction of rows for which the right class is predicted."""
    macro: Average
    """Mean over classes."""
    weighted: Average
    """Mean over classes, weighted by their rows."""
    per_class: list[ClassScores]
    """Scores of each class."""
    confusion: Confusion
    """Number of rows by true and predicted class."""

    @field_validator("confusion", mode="before")
    @classmethod
    def _from_matrix(cls, value: object) -> object:
        """Earlier versions wrote a list for each true class with the rows of every predicted class."""
        if not isinstance(value, list):
            return value
        return Confusion.of_matrix(np.array(value, np.int64).reshape(len(value), len(value)))

    def as_metrics(self, set_name: str) -> dict[str, float]:
        """Metrics by name, such as `validation_loss` for the set `validation`; averages are over classes (macro)."""
        return {
            f"{set_name}_loss": self.loss,
            f"{set_name}_accuracy": self.accuracy,
            f"{set_name}_precision": self.macro.precision,
            f"{set_name}_recall": self.macro.recall,
            f"{set_name}_f1": self.macro.f1,
        }


class LanguageScores(StrictModel):
    """How well a language model predicts each token of a set from those before it in its text."""

    tokens: int
    """Tokens predicted; a text's end is one."""
    loss: float
    """Mean cross-entropy, in nats for each token."""
    perplexity: float
    """e to the power of the loss: of how many equally likely tokens it is as unsure."""

    def as_metrics(self, set_name: str) -> dict[str, float]:
        """Metrics by name, such as `validation_loss` for the set `validation`."""
        return {f"{set_name}_loss": self.loss, f"{set_name}_perplexity": self.perplexity}


AnyScores = Scores | LanguageScores
LARGEST_LOSS = 700.0
"""Beyond it, the perplexity is no finite number."""
_WHEN_SCORED = "when the model is scored"


def language_scores(loss_sum: float, tokens: int) -> LanguageScores:
    """Raises Diverged if the loss is not finite."""
    check_finite("the loss", loss_sum, _WHEN_SCORED)
    loss = loss_sum / max(tokens, 1)
    return LanguageScores(tokens=tokens, loss=loss, perplexity=math.exp(min(loss, LARGEST_LOSS)))


def check_finite(name: str, value: float, when: str) -> None:
    """Raises Diverged if the value of this name is not finite."""
    if not math.isfinite(value):
        raise Diverged(
            f"training diverged: {name} is {value} {when}. Lower the optimizer's learningRate, add a warm-up "
            "(spec.training.scheduler) or set spec.training.gradientClipping."
        )


def scores(confusion: Confusion, loss_sum: float, classes: list[str]) -> Scores:
    """All scores from the rows by class and the sum of their losses.

    Raises Diverged if the loss is not finite.
    """
    check_finite("the loss", loss_sum, _WHEN_SCORED)
    true, predicted = np.array(confusion.true, np.int64), np.array(confusion.predicted, np.int64)
    counts = np.array(confusion.rows, np.int64)
    support, answers = _sums(counts, true, len(classes)), _sums(counts, predicted, len(classes))
    is_right = true == predicted
    right = _sums(counts[is_right], true[is_right], len(classes))
    table = np.stack(
        [_ratio(right, answers), _ratio(right, support), _ratio(2 * right, support + answers)],
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
        confusion=confusion,
    )


def _sums(counts: np.ndarray, classes: np.ndarray, number: int) -> np.ndarray:
    """The counts of each class, int64 [number]."""
    sums = np.zeros(number, np.int64)
    np.add.at(sums, classes, counts)
    return sums


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """The ratios, 0 where the denominator is 0."""
    return np.divide(numerator, denominator, out=np.zeros(len(denominator)), where=denominator > 0)


def _named(line: np.ndarray) -> dict[str, float]:
    return dict(zip(("precision", "recall", "f1"), line.tolist(), strict=True))
