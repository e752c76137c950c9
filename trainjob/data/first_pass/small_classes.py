"""Classes with too few rows to learn them and, where rows are set aside for validation, to validate on."""

from collections.abc import Sequence

import numpy as np

from trainjob.api import Dataset
from trainjob.api.data_profile import FEW_ROWS
from trainjob.data.first_pass.split import distinct_rows
from trainjob.data.first_pass.survey import ScanPlan, Survey, T, take_survey
from trainjob.data.read.bad_rows import BadRows, TooFewRows
from trainjob.data.read.chunking import Mapper
from trainjob.data.read.rows import SourcePart
from trainjob.errors import DataError, listed

_KIND = "of a class with too few rows that can be used"
_ADVICE = "add rows, drop the class, or give dataset.validation.uri"
_MEASURED = (
    "labels are classes (text, whole numbers, or true and false); a column of measurements, as for regression, is not "
    "supported"
)


def without_small_classes(survey: Survey[T], dataset: Dataset, bad: BadRows) -> Survey[T]:
    """The survey without the classes that have too few rows, which are counted in `bad`.

    Raises DataError where rows have no labels and there are too few of them, where labels are measurements, and where
    rows are dropped and with them a class that has none left, or had at least FEW_ROWS.
    """
    needed = 1 if dataset.validation.fraction is None else 2
    small = distinct_rows(survey.hashes, survey.strata, len(survey.unusable)) < needed
    if not small.any():
        return survey
    if survey.labels is None:
        counted = _counted(len(survey.hashes), int(survey.unusable[0]))
        raise DataError(
            f"the set has {counted}: too few to set some aside for validation; add rows, or give dataset.validation.uri"
        )
    rows = np.bincount(survey.labels, minlength=len(survey.classes))
    measured = 0
    for number in np.flatnonzero(small).tolist():
        name, usable, unusable = survey.classes[number], int(rows[number]), int(survey.unusable[number])
        told = f'class "{name}" has {_counted(usable, unusable)}'
        message = f"{told}: too few to set some aside for validation" if needed > 1 else told
        had = usable + unusable
        if dataset.on_bad_rows == "drop" and unusable and (had >= FEW_ROWS or (not usable and had >= needed)):
            raise DataError(f"{told}: the whole class would be dropped. Correct its rows, or take them all out")
        measured += _is_fraction(name)
        if usable:
            advice = _MEASURED if _is_fraction(name) else _ADVICE
            bad.add_rows(_KIND, usable, told, f"{message}; {advice}", advice)
    if 2 * measured > len(survey.classes):
        raise DataError(f"the labels of {listed(dataset.train.all_uris)} are numbers with fractions: {_MEASURED}")
    return survey.without(small)


def _counted(usable: int, unusable: int) -> str:
    if unusable:
        return f"{usable:,} of {usable + unusable:,} rows that can be used"
    return "one row" if usable == 1 else f"{usable:,} rows, all equal"


def _is_fraction(name: str) -> bool:
    try:
        return not float(name).is_integer()
    except (ValueError, OverflowError):
        return False


def survey_classes(
    dataset: Dataset, parts: Sequence[SourcePart], plan: ScanPlan[T], mapped: Mapper, bad: BadRows
) -> tuple[Survey[T], list[str]]:
    """The survey of the training source without classes that have too few rows, and the names of these.

    Raises DataError for rows of one class alone, besides what `take_survey` and `without_small_classes` do.
    """
    every, place = take_survey(dataset.train, parts, plan, mapped, bad), listed(dataset.train.all_uris)
    if len(every.classes) == 1:
        raise TooFewRows(f'{place}: every row has the label "{every.classes[0]}"; at least two are needed')
    survey = without_small_classes(every, dataset, bad)
    if len(survey.classes) < 2:
        left = f'only the class "{survey.classes[0]}" has' if survey.classes else "no class has"
        raise TooFewRows(f"{place}: {left} enough rows; at least two are needed")
    return survey, sorted(set(every.classes) - set(survey.classes))
