"""The target of regressors: the number in `dataset.label`, or those in each of the columns of `dataset.labels`."""

from typing import Any

from trainjob.api import Dataset
from trainjob.kinds.targets.number import NumberLabels, OneNumber
from trainjob.kinds.targets.several_numbers import SeveralNumberLabels, SeveralNumbers

NumberTarget = OneNumber | SeveralNumbers


def number_reader(dataset: Dataset, column: str) -> NumberLabels | SeveralNumberLabels:
    """The reader of a dataset's labels, which its parts have in `column`."""
    return SeveralNumberLabels(column, dataset.labels) if dataset.labels else NumberLabels(column)


def load_target(state: dict[str, Any]) -> NumberTarget:
    """The target that was saved with these fields of preprocessor.json, which are taken out."""
    return SeveralNumbers.load(state) if "label_columns" in state else OneNumber.load(state)
