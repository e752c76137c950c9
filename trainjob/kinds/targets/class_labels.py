"""Reads class names in the first pass, and leaves out classes with too few rows to train and to validate on."""

from dataclasses import dataclass, field, replace

import numpy as np

from trainjob.api import Dataset
from trainjob.api.data_profile import FEW_ROWS
from trainjob.data.first_pass.split import distinct_rows
from trainjob.data.first_pass.survey import TOO_FEW, Survey, T, Translation, fewest_rows, rows_counted
from trainjob.data.read.bad_rows import BadRows, ShownRow, TooFewRows
from trainjob.data.read.labels import label_errors, label_numbers
from trainjob.data.read.rows import OnBadRow, Rows
from trainjob.errors import DataError, listed
from trainjob.kinds.targets.one_class import OneClass

_KIND = "of a class with too few rows that can be used"
_ADVICE = "add rows, drop the class, or give dataset.validation.uri"
_MEASURED = (
    "labels are classes (text, whole numbers, or true and false); to predict numbers, use a regressor: "
    "spec.model.textRegressor, imageRegressor or tableRegressor"
)


@dataclass
class ClassLabels:
    """A label is the index of a class in order of first occurrence; `OneClass` sorts the classes."""

    column: str
    fewest: int = 2
    """The fewest classes that can be learned."""
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    """The index of each class."""

    def read(self, rows: Rows, on_bad: OnBadRow) -> tuple[Rows, np.ndarray]:
        """The labels are int64 [n]."""
        labels = label_numbers(rows, self.column, self.numbers)
        for error in label_errors(rows, self.column, np.flatnonzero(labels < 0)):
            on_bad(error)
        return rows.take(np.flatnonzero(labels >= 0)), labels[labels >= 0]

    def merge(self, later: "ClassLabels") -> Translation:
        numbers = [self.numbers.setdefault(name, len(self.numbers)) for name in later.numbers]
        return np.array(numbers, np.int64).__getitem__

    def fit(self, survey: Survey[T], dataset: Dataset, bad: BadRows) -> tuple[Survey[T], OneClass]:
        """Raises DataError for fewer classes than `fewest`, where labels are measurements, and where rows are dropped
        and with them a class that has none left, or had at least FEW_ROWS."""
        assert survey.labels is not None
        uris, classes = listed(dataset.train.all_uris), np.array(sorted(self.numbers), object)
        if len(classes) < self.fewest:
            where = f' in column "{dataset.label}"' if dataset.label else ""
            raise TooFewRows(f'{uris}: every row has the label "{classes[0]}"{where}; at least two are needed')
        order = np.argsort([self.numbers[name] for name in classes])
        labels = order[survey.labels]
        unusable = np.zeros(len(classes), np.int64)
        if survey.unusable is not None:
            unusable = np.bincount(order[survey.unusable], minlength=len(classes))
        is_small = _small_classes(classes.tolist(), labels, unusable, survey.hashes, dataset, bad)
        kept = classes[~is_small].tolist()
        if len(kept) < self.fewest:
            left = f'only the class "{kept[0]}" has' if kept else "no class has"
            raise TooFewRows(f"{uris}: {left} enough rows; at least two are needed")
        is_kept, numbers = ~is_small[labels], np.cumsum(~is_small) - 1
        usable = replace(survey.take(is_kept), labels=numbers[labels[is_kept]])
        return usable, OneClass(kept, [], classes[is_small].tolist())


def _small_classes(
    classes: list[str], labels: np.ndarray, unusable: np.ndarray, hashes: np.ndarray, dataset: Dataset, bad: BadRows
) -> np.ndarray:
    """Whether each class has too few rows, bool [C]; these rows are counted in `bad`. `labels` int64 [n] and `hashes`
    uint64 [n] are those of the usable rows, `unusable` the number of other rows of each class, int64 [C]."""
    needed = fewest_rows(dataset)
    is_small = distinct_rows(hashes, labels, len(classes)) < needed
    rows = np.bincount(labels, minlength=len(classes))
    measured = 0
    for number in np.flatnonzero(is_small).tolist():
        name, found, lost = classes[number], int(rows[number]), int(unusable[number])
        problem = f'class "{name}" has {rows_counted(found, lost)}'
        message = f"{problem}: {TOO_FEW}" if needed > 1 else problem
        had = found + lost
        if dataset.on_bad_rows == "drop" and lost and (had >= FEW_ROWS or (not found and had >= needed)):
            raise DataError(f"{problem}: the whole class would be dropped. Correct its rows, or remove them all")
        measured += _is_fraction(name)
        if found:
            advice = _MEASURED if _is_fraction(name) else _ADVICE
            bad.add_rows(_KIND, found, ShownRow(problem), f"{message}; {advice}", advice)
    if 2 * measured > len(classes):
        raise DataError(f"the labels of {listed(dataset.train.all_uris)} are numbers with fractions: {_MEASURED}")
    return is_small


def _is_fraction(name: str) -> bool:
    try:
        return not float(name).is_integer()
    except (ValueError, OverflowError):
        return False
