"""A confusion matrix as the report shows it."""

from dataclasses import dataclass

from trainjob.evaluation.scores import Scores


@dataclass(frozen=True)
class Cell:
    """Rows of one true class that were predicted as one class."""

    true: str
    predicted: str
    count: int
    share: float
    """Of the rows of the true class."""
    correct: bool

    @property
    def depth(self) -> float:
        """Depth of the cell's colour, 0 to 1: the root of the share, so that rare confusions can be seen."""
        return self.share**0.5


def matrix(scores: Scores) -> list[list[Cell]]:
    """The cells row by row: rows are true classes, columns predicted ones."""
    names = [each.name for each in scores.per_class]
    return [
        [
            Cell(names[i], names[j], count, count / rows if (rows := sum(line)) else 0.0, i == j)
            for j, count in enumerate(line)
        ]
        for i, line in enumerate(scores.confusion)
    ]


def most_confused(cells: list[list[Cell]], most: int = 10) -> list[Cell]:
    """The most frequent confusions, most rows first."""
    wrong = [cell for line in cells for cell in line if cell.count and not cell.correct]
    return sorted(wrong, key=lambda cell: -cell.count)[:most]
