"""The scores of a classifier, all computed from its confusion matrix except the loss."""

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa
from pydantic import field_validator

from trainjob.api import StrictModel
from trainjob.evaluation.confusion import Cell, Confusion
from trainjob.evaluation.mistakes import confident_mistakes, is_wrong
from trainjob.evaluation.paired import ClassEstimates, ClassJudge, ClassLead, estimate_from_confusion
from trainjob.evaluation.scores.base import WHEN_SCORED, Measure, Scores, Table, Worst, check_finite
from trainjob.formatting import count, percent, score

MAX_MATRIX_SIDE = 60
"""With more classes than this, the report shows the most frequent confusions but no matrix."""
MAX_CLASSES = 100
"""With more classes, tables show those with the lowest F1."""


class Average(StrictModel):
    """Precision, recall and F1 of one class or averaged over classes; each is 0 where its denominator is 0."""

    precision: float
    """Fraction of the rows with this prediction that are of the class."""
    recall: float
    """Fraction of the rows of the class that are predicted as this class."""
    f1: float
    """Harmonic mean of precision and recall."""


class ClassScores(Average):
    """How well one class is distinguished from the others."""

    name: str
    """Name of the class."""
    rows: int
    """Rows whose label is this class."""


class ClassificationScores(Scores):
    """How well a classifier does on a set of rows."""

    section: ClassVar[str] = "classes.html.j2"
    caution: ClassVar[str] = "It always answers with one of these classes, even for inputs that belong to none of them."

    stored_columns: ClassVar[tuple[str, ...]] = ("row", "label", "prediction", "probability")

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

    @property
    def classes(self) -> list[str]:
        return [each.name for each in self.per_class]

    @property
    def purpose(self) -> str:
        return f"tell {count(len(self.per_class))} classes apart"

    def as_metrics(self, set_name: str) -> dict[str, float]:
        """Averages are over classes (macro)."""
        return {
            f"{set_name}_loss": self.loss,
            f"{set_name}_accuracy": self.accuracy,
            f"{set_name}_precision": self.macro.precision,
            f"{set_name}_recall": self.macro.recall,
            f"{set_name}_f1": self.macro.f1,
        }

    def size(self) -> tuple[str, int]:
        return "rows", self.rows

    def missing_classes(self) -> list[str]:
        return [each.name for each in self.per_class if not each.rows]

    def measures(self) -> list[Measure]:
        return [
            Measure("accuracy", "accuracy", self.accuracy),
            Measure("precision", "macro precision", self.macro.precision),
            Measure("recall", "macro recall", self.macro.recall),
            Measure("f1", "macro F1", self.macro.f1),
        ]

    def in_brief(self) -> str:
        return f"accuracy {score(self.accuracy)}   F1 {score(self.macro.f1)} (macro)   {count(self.rows)} rows"

    def headline(self) -> str:
        scores = f"accuracy {self.accuracy:.4f}, macro F1 {self.macro.f1:.4f}, loss {self.loss:.4f}"
        return f"{count(self.rows)} rows: {scores}"

    def table(self) -> Table:
        averages = [("macro average", self.rows, self.macro), ("weighted average", self.rows, self.weighted)]
        lines = [*((each.name, each.rows, each) for each in self.per_class), *averages]
        return Table(
            ("class", "rows", "precision", "recall", "F1"),
            [
                (name, count(rows), f"{line.precision:.4f}", f"{line.recall:.4f}", f"{line.f1:.4f}")
                for name, rows, line in lines
            ],
        )

    def excerpt(self, set_name: str) -> Table:
        shown = self.shown_classes()
        chosen = f" (the {len(shown)} with the lowest F1)" if len(shown) < len(self.per_class) else ""
        return Table(
            ("class", "rows", "precision", "recall", "F1"),
            [
                (each.name, count(each.rows), score(each.precision), score(each.recall), score(each.f1))
                for each in shown
            ],
            title=f"By class, on the {set_name} set{chosen}",
        )

    def tiles(self) -> list[tuple[str, str]]:
        return [("Accuracy", percent(self.accuracy)), ("Macro F1", score(self.macro.f1)), ("Loss", score(self.loss))]

    @cached_property
    def estimates(self) -> ClassEstimates:
        return estimate_from_confusion(self.confusion, len(self.per_class))

    @classmethod
    def judge_of(cls, columns: Sequence[pa.ChunkedArray]) -> ClassJudge:
        names = {name for column in columns for name in column.to_pylist()}
        return ClassJudge(sorted(names))

    @classmethod
    def worst(cls, predictions: pa.Table, set_name: str) -> Worst:
        """The wrong predictions with the highest probability."""
        wrong, indices = int(is_wrong(predictions).sum()), confident_mistakes(predictions)
        lines = [
            (line["prediction"], percent(line["probability"]), line["label"])
            for line in predictions.select(["prediction", "probability", "label"]).take(indices).to_pylist()
        ]
        summary = f"{count(wrong)} of {count(len(predictions))} {set_name} rows are predicted wrong"
        summary += f". Of these, the model is surest of the following {len(lines)}." if len(lines) < wrong else "."
        if wrong == 0:
            summary = f"No mistakes: all {count(len(predictions))} {set_name} rows are predicted right."
        return Worst("Which rows are wrong", summary, indices, lines)

    @classmethod
    def compared_types(cls) -> tuple[type[ClassEstimates], type[ClassLead]]:
        return ClassEstimates, ClassLead

    def shown_classes(self) -> list[ClassScores]:
        """All classes in their order. If there are too many, the MAX_CLASSES with the lowest F1 among those that have
        rows in the set, the worst first."""
        if len(self.per_class) <= MAX_CLASSES:
            return self.per_class
        return sorted((each for each in self.per_class if each.rows), key=lambda each: each.f1)[:MAX_CLASSES]

    def cells(self) -> list[Cell]:
        """A cell for each pair of classes that has rows."""
        confusion, classes = self.confusion, self.per_class
        return [
            Cell(classes[true].name, classes[predicted].name, rows, rows / classes[true].rows, true == predicted)
            for true, predicted, rows in zip(confusion.true, confusion.predicted, confusion.rows, strict=True)
        ]

    def matrix(self) -> list[list[Cell]]:
        """All cells, with a row for each true class and a column for each predicted one. Empty if there are too many
        classes to draw."""
        if len(self.per_class) > MAX_MATRIX_SIDE:
            return []
        there = {(cell.true, cell.predicted): cell for cell in self.cells()}
        return [
            [there.get((true, other), Cell(true, other, 0, 0.0, true == other)) for other in self.classes]
            for true in self.classes
        ]

    def most_confused(self, limit: int = 10) -> list[Cell]:
        """The most frequent confusions, the one with most rows first."""
        wrong = [cell for cell in self.cells() if not cell.correct]
        return sorted(wrong, key=lambda cell: -cell.count)[:limit]


def classification_scores(confusion: Confusion, loss_sum: float, classes: list[str]) -> ClassificationScores:
    """Computes all scores from the confusion matrix and the sum of the losses.

    Raises Diverged if the loss is not finite.
    """
    check_finite("the loss", loss_sum, WHEN_SCORED)
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
    return ClassificationScores(
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
