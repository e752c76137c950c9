"""The first pass over rows without labels."""

from dataclasses import dataclass

from trainjob.api import Dataset
from trainjob.data.first_pass.survey import Survey, T, Translation, refuse_too_few
from trainjob.data.read.bad_rows import BadRows
from trainjob.data.read.rows import OnBadRow, Rows
from trainjob.kinds.targets.next_token import NextToken


@dataclass(frozen=True)
class NoLabels:
    """All rows are in one stratum."""

    def read(self, rows: Rows, on_bad: OnBadRow) -> tuple[Rows, None]:
        return rows, None

    def merge(self, later: "NoLabels") -> Translation:
        return lambda labels: labels

    def fit(self, survey: Survey[T], dataset: Dataset, bad: BadRows) -> tuple[Survey[T], NextToken]:
        """Raises DataError for too few different rows to set some aside for validation."""
        refuse_too_few(survey.hashes, dataset)
        return survey, NextToken()
