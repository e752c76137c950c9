"""The first pass over rows without labels."""

from dataclasses import dataclass

from trainjob.api import Dataset
from trainjob.data.first_pass.split import distinct_rows
from trainjob.data.first_pass.survey import Survey, T, Translation, rows_counted
from trainjob.data.read.bad_rows import BadRows
from trainjob.data.read.rows import OnBadRow, Rows
from trainjob.errors import DataError
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
        target, rows = NextToken(), len(survey.hashes)
        needed = 1 if dataset.validation.fraction is None else 2
        if distinct_rows(survey.hashes, target.strata(None, rows), 1)[0] < needed:
            raise DataError(
                f"the set has {rows_counted(rows)}: too few to set some aside for validation; add rows, or give "
                "dataset.validation.uri"
            )
        return survey, target
