"""Scores by class and confusions as the report shows them."""

from dataclasses import dataclass

from trainjob.evaluation.scores import ClassScores, Scores

MOST_CLASSES = 100
"""With more classes, tables show those with the lowest F1."""


@dataclass(frozen=True)
class Cell:
    """The rows of one true class for which the model predicted one class."""

    true: str
    predicted: str
    count: int
    share: float
    """Fraction of the rows of the true class."""
    correct: bool

    @property
    def depth(self) -> float:
        """Strength of the cell's colour, 0 to 1: the square root of the share makes rare confusions visible."""
        return self.share**0.5


def cells(scores: Scores) -> list[Cell]:
    """A cell for each pair of classes that has rows."""
    confusion, classes = scores.confusion, scores.per_class
    return [
        Cell(classes[true].name, classes[predicted].name, count, count / classes[true].rows, true == predicted)
        for true, predicted, count in zip(confusion.true, confusion.predicted, confusion.rows, strict=True)
    ]


def matrix(scores: Scores) -> list[list[Cell]]:
    """All cells row by row: a row for each true class, a column for each predicted one."""
    names = [each.name for each in scores.per_class]
    there = {(cell.true, cell.predicted): cell for cell in cells(scores)}
    return [
        [there.get((true, predicted), Cell(true, predicted, 0, 0.0, true == predicted)) for predicted in names]
        for true in names
    ]


def most_confused(scores: Scores, limit: int = 10) -> list[Cell]:
    """The most frequent confusions, the one with most rows first."""
    wrong = [cell for cell in cells(scores) if not cell.correct]
    return sorted(wrong, key=lambda cell: -cell.count)[:limit]


def shown_classes(scores: Scores) -> list[ClassScores]:
    """All classes in their order; of many, those that rows of the set belong to and that have the lowest F1, the worst
    first."""
    if len(scores.per_class) <= MOST_CLASSES:
        return scores.per_class
    return sorted((each for each in scores.per_class if each.rows), key=lambda each: each.f1)[:MOST_CLASSES]
