"""A confusion matrix as the report shows it."""

from dataclasses import dataclass

from trainjob.evaluation.scores import Scores


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


def matrix(scores: Scores) -> list[list[Cell]]:
    """The cells row by row: a row for each true class, a column for each predicted one."""
    names = [each.name for each in scores.per_class]
    return [
        [
            Cell(names[i], names[j], count, count / rows if (rows := sum(line)) else 0.0, i == j)
            for j, count in enumerate(line)
        ]
        for i, line in enumerate(scores.confusion)
    ]


def most_confused(cells: list[list[Cell]], limit: int = 10) -> list[Cell]:
    """The most frequent confusions, the one with most rows first."""
    wrong = [cell for line in cells for cell in line if cell.count and not cell.correct]
    return sorted(wrong, key=lambda cell: -cell.count)[:limit]
