"""Reads a column with one class in each cell, or any number of labels; the cells decide which. If every cell lists
exactly one label, the labels are classes."""

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Self

import numpy as np

from trainjob.api import Dataset, ImageClassifier, TextClassifier
from trainjob.data.first_pass.survey import Survey, T, Translation, refuse_too_few
from trainjob.data.read.bad_rows import BadRows, TooFewRows
from trainjob.data.read.label_lists import Notation, empty_label_error, label_column, labels_in, list_error, notation_of
from trainjob.data.read.labels import label_errors, label_numbers
from trainjob.data.read.rows import OnBadRow, Rows
from trainjob.errors import DataError, listed
from trainjob.kinds.classifier import ONE_CLASS_LOSS
from trainjob.kinds.targets.class_labels import ClassLabels
from trainjob.kinds.targets.one_class import OneClass
from trainjob.kinds.targets.several_labels import EMPTY_LIST, MAX_LABELS, SeveralLabels

ClassTarget = OneClass | SeveralLabels
"""The target of a classifier."""
_ADVICE = 'write each as a list, such as ["a"], or [] for a row without a label'


@dataclass
class ClassOrLabels:
    """Until the target is fitted, a label is the index of a cell's content in order of first occurrence."""

    column: str
    given: list[str] | None = None
    """The names of all labels, where they are known."""
    loss: str | None = None
    """The path of the loss, where it does not allow several labels."""
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    """The index of each content."""
    problems: dict[str, str] = field(default_factory=dict[str, str])
    """The contents that are lists which cannot be used."""
    examples: dict[Notation, str] = field(default_factory=dict[Notation, str])
    """The location of the first row with each notation."""

    @classmethod
    def of(cls, dataset: Dataset, spec: TextClassifier | ImageClassifier, column: str | None = None) -> Self:
        """The reader of a dataset's labels, which its parts have in `column`."""
        loss = f"{spec.path}.loss" if spec.excludes_several_labels else None
        return cls(column or str(label_column(dataset)), dataset.labels, loss)

    def read(self, rows: Rows, on_bad: OnBadRow) -> tuple[Rows, np.ndarray]:
        """The labels are int64 [n]."""
        before = len(self.numbers)
        found = label_numbers(rows, self.column, self.numbers)
        for name in reversed(list(islice(reversed(self.numbers), len(self.numbers) - before))):
            notation = notation_of(name)
            if notation not in self.examples:
                self.examples[notation] = rows.where(int(np.argmax(found == self.numbers[name])))
            if notation in ("list", "choices"):
                try:
                    labels_in(name, notation)
                except ValueError as error:
                    self.problems[name] = str(error)
        for error in label_errors(rows, self.column, np.flatnonzero(found < 0)):
            on_bad(error)
        is_bad = found < 0
        for name, problem in self.problems.items():
            here = found == self.numbers[name]
            for index in np.flatnonzero(here).tolist():
                on_bad(list_error(rows.where(index), self.column, problem))
            is_bad |= here
        return rows.take(np.flatnonzero(~is_bad)), found[~is_bad]

    def merge(self, later: "ClassOrLabels") -> Translation:
        self.problems |= later.problems
        self.examples = later.examples | self.examples
        numbers = [self.numbers.setdefault(name, len(self.numbers)) for name in later.numbers]
        return np.array(numbers, np.int64).__getitem__

    def fit(self, survey: Survey[T], dataset: Dataset, bad: BadRows) -> tuple[Survey[T], ClassTarget]:
        """Raises DataError if only some cells are lists, if the loss does not allow lists, and if nothing can be
        learned."""
        assert survey.labels is not None
        rows = np.bincount(survey.labels, minlength=len(self.numbers))
        cells = {name: notation_of(name) for name, number in self.numbers.items() if rows[number]}
        if not self._are_lists(cells, rows):
            return ClassLabels(self.column, numbers=self.numbers).fit(survey, dataset, bad)
        if (only := self._only_labels()) is not None:
            return self._fit_classes(only, survey, dataset, bad)
        if self.loss is not None:
            raise DataError(
                f'{self.loss}: must not be crossEntropy where rows have several labels, as in column "{self.column}": '
                f"{ONE_CLASS_LOSS}"
            )
        found = self._labels_of(cells)
        names = self.given or sorted({name for each in found.values() for name in each})
        bad.advise(empty_label_error("", self.column, EMPTY_LIST))
        uris = listed(dataset.train.all_uris)
        if not names:
            raise TooFewRows(f'{uris}: no row has a label: column "{self.column}" has only empty lists')
        if len(names) > MAX_LABELS:
            raise DataError(
                f'{uris}: column "{self.column}" has {len(names):,} different labels; at most {MAX_LABELS:,} can be '
                "learned: leave out rare ones"
            )
        indices = {name: index for index, name in enumerate(names)}
        of_cell = np.zeros((len(self.numbers), len(names)), np.int8)
        for cell, each in found.items():
            of_cell[self.numbers[cell], [indices[name] for name in each]] = 1
        labels = of_cell[survey.labels]
        self._check(names, labels, survey.hashes, dataset)
        return replace(survey, labels=labels, unusable=None), SeveralLabels.of(names, labels)

    def _only_labels(self) -> dict[str, str] | None:
        """The label of each cell, if every one lists exactly one."""
        cells = {name: notation_of(name) for name in self.numbers if name not in self.problems}
        found = self._labels_of(cells)
        if self.given is not None or any(len(names) != 1 for names in found.values()):
            return None
        return {cell: name for cell, (name,) in found.items()}

    def _fit_classes(
        self, only: dict[str, str], survey: Survey[T], dataset: Dataset, bad: BadRows
    ) -> tuple[Survey[T], OneClass]:
        """Fits like `fit`, with the label of each cell as its class."""
        reader = ClassLabels(self.column)
        of_cell = np.zeros(len(self.numbers), np.int64)
        for cell, name in only.items():
            of_cell[self.numbers[cell]] = reader.numbers.setdefault(name, len(reader.numbers))
        assert survey.labels is not None
        unusable = None if survey.unusable is None else of_cell[survey.unusable]
        return reader.fit(replace(survey, labels=of_cell[survey.labels], unusable=unusable), dataset, bad)

    def _are_lists(self, cells: dict[str, Notation], rows: np.ndarray) -> bool:
        """Whether the cells list labels. Raises DataError where only some do."""
        by_notation = Counter[Notation]()
        for name, notation in cells.items():
            by_notation[notation] += int(rows[self.numbers[name]])
        plain = by_notation["plain"] + by_notation["separated"]
        if by_notation["list"] and plain:
            example = self.examples["plain" if by_notation["plain"] else "separated"]
            raise DataError(
                f'column "{self.column}" has lists of labels in {by_notation["list"]:,} rows (such as '
                f"{self.examples['list']}), and a single label in {plain:,} (such as {example}): {_ADVICE}"
            )
        if by_notation["list"] or by_notation["choices"]:
            return True
        parts = Counter(part.strip() for name, each in cells.items() if each == "separated" for part in name.split("|"))
        return any(count > 1 or part in cells for part, count in parts.items() if part)

    def _labels_of(self, cells: dict[str, Notation]) -> dict[str, list[str]]:
        """The labels in each cell. Raises DataError for a cell that separates labels with a problem."""
        has_choices = "choices" in cells.values()
        found: dict[str, list[str]] = {}
        for name, notation in cells.items():
            try:
                found[name] = labels_in(name, "plain" if notation == "separated" and has_choices else notation)
            except ValueError as error:
                raise DataError(
                    f'column "{self.column}" separates labels by "|", but of "{name[:60]}", {error}: correct these rows'
                ) from None
        return found

    def _check(self, names: list[str], labels: np.ndarray, hashes: np.ndarray, dataset: Dataset) -> None:
        """Raises DataError for labels that all rows have, or none, and for too few rows."""
        uris, counts = listed(dataset.train.all_uris), labels.sum(axis=0, dtype=np.int64)
        for share, which in ((0, "no row"), (len(labels), "every row")):
            if constant := [name for name, count in zip(names, counts.tolist(), strict=True) if count == share]:
                named = f'the label "{constant[0]}"' if len(constant) == 1 else f"the labels {listed(constant)}"
                advice = f"leave {'it' if len(constant) == 1 else 'them'} out" + (
                    " of dataset.labels" if self.given else ""
                )
                raise TooFewRows(
                    f"{uris}: {which} of {len(labels):,} has {named}, so there is nothing to learn: {advice}"
                )
        refuse_too_few(hashes, dataset)


def load_target(state: dict[str, Any]) -> ClassTarget:
    """The target that was saved with these fields of preprocessor.json, which are taken out."""
    return SeveralLabels.load(state) if "labels" in state else OneClass.load(state)
