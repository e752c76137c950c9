"""A preview of unknown data, from which each kind of model proposes a TrainJob."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from trainjob.data.read.bad_rows import BadRows
from trainjob.data.read.image_files import IDXFiles, ImageFiles
from trainjob.data.read.rows import SourcePart, check_columns, is_bytes
from trainjob.errors import UserError
from trainjob.kinds.preview_column import Column

_SURE_NAMES_OF_LABELS = ("label", "labels", "target")
_NAMES_OF_LABELS = (
    *(*_SURE_NAMES_OF_LABELS, "class", "classname", "category", "y", "tag", "outcome", "sentiment", "intent"),
    *("species", "diagnosis"),
)
_NAMES_OF_LISTS = (*_NAMES_OF_LABELS, "tags", "cats", "categories", "topics", "choices", "accept", "genres", "classes")
_REFUSED_BY_PRODIGY = {"reject", "ignore"}
_UNKNOWN_LIST = pa.list_(pa.null())
"""The type of lists that are all empty, or of values of several types."""
_NAMES_OF_SCORES = ("score", "similarity", "similarityscore", "relatedness", "relatednessscore")
SURE = 3
"""The confidence of a proposal for data that only one kind of model can learn."""


def labels_of(fields: Mapping[str, Any]) -> list[str]:
    """The columns of the labels that fields of the dataset name."""
    return [fields["label"]] if "label" in fields else fields["labels"]


class Unsuitable(UserError):
    """A kind of model does not fit the data."""


@dataclass(frozen=True)
class DataPreview:
    """The first rows of the training data."""

    uri: str
    parts: Sequence[SourcePart]
    named_labels: Sequence[str] = ()
    """The columns that the user names as labels."""
    columns: dict[str, Column] = field(default_factory=dict[str, Column])
    """The columns of a table without those of `nested`; empty for images."""
    nested: dict[str, pa.DataType] = field(default_factory=dict[str, pa.DataType])
    """The columns that hold lists, objects and bytes."""
    notes: list[str] = field(default_factory=list[str])
    """Sentences about oddities of the data."""
    bad: BadRows = field(default_factory=BadRows)
    """The rows of a table that cannot be read."""

    @property
    def has_images(self) -> bool:
        return isinstance(self.parts[0], ImageFiles | IDXFiles)

    @property
    def names(self) -> set[str]:
        """The names of all columns."""
        return {*self.columns, *self.nested}

    @property
    def texts(self) -> list[str]:
        """The columns with texts of several words."""
        return [name for name, column in self.columns.items() if column.is_text]

    @property
    def _called_label(self) -> list[str]:
        """The columns with a usual name of a label; if some have the most usual names, only those."""
        called = [name for name in self.columns if _is_called(name, _NAMES_OF_LABELS)]
        return [name for name in called if _is_called(name, _SURE_NAMES_OF_LABELS)] or called

    def not_read(self, names: Sequence[str]) -> list[str]:
        """Notes on the columns beside those that a model reads."""
        others = [name for name in (*self.columns, *self.nested) if name not in names]
        notes = [f"Not read: {', '.join(others)}."] if others else []
        if "answer" in self.columns and "answer" in others and "_task_hash" not in self.names:
            verdicts = sorted((self.columns["answer"].found.words or set[str]()) & _REFUSED_BY_PRODIGY)
            if verdicts:
                notes.append(
                    f'The column "answer" says {" and ".join(verdicts)} in some rows, as Prodigy writes; they are read '
                    "like all others: take them out of the file."
                )
        return notes

    def several_labels(self) -> tuple[dict[str, Any], str] | None:
        """The field of the dataset with any number of labels a row, and the reason: a column of lists, or several
        columns of 0 and 1. None where rows have one label."""
        if len(self.named_labels) > 1:
            check_columns(self.named_labels, list(self.columns), self.uri)
            if others := [name for name in self.named_labels if not self.columns[name].may_be_flag]:
                raise Unsuitable(f"{_listed(others)}: other values than 0 and 1, so each is not one of several labels")
            return {"labels": list(self.named_labels)}, ""
        lists = [name for name, kind in self.nested.items() if _lists_labels(kind)]
        lists += [name for name, column in self.columns.items() if column.lists_labels]
        if self.named_labels:
            return ({"label": self.named_labels[0]}, "") if self.named_labels[0] in lists else None
        if len(called := [name for name in lists if _is_called(name, _NAMES_OF_LISTS)]) == 1:
            return {"label": called[0]}, ""
        if self._called_label:
            return None
        if len(sure := [name for name in lists if self.nested.get(name) != _UNKNOWN_LIST]) == 1:
            return {"label": sure[0]}, "GUESSED: the only column of lists"
        flags = [name for name, column in self.columns.items() if column.is_flag]
        others = [name for name, column in self.columns.items() if column.is_learned(name) and not column.is_text]
        if not 1 < len(flags) >= len(set(others) - set(flags)):
            return None  # with more columns of other types, flags describe the row as these do
        return {"labels": flags}, "GUESSED: the columns of 0 and 1, one for each label"

    def number_label(self) -> tuple[str, str]:
        """The column with the number to predict for each row, and the reason. Raises Unsuitable where none is likely,
        or it holds no numbers."""
        if named := self._named_label():
            likely, why = [named], ""
        elif likely := self._called_label:
            why = ""
        else:
            measures = [name for name, column in self.columns.items() if column.measures]
            numbers = [name for name, column in self.columns.items() if column.is_number and column.has_few]
            likely, why = self._guessed(measures, "many") if measures else self._guessed(numbers, "few")
        if len(likely) != 1:
            raise Unsuitable("the column with the number to predict is not clear: name it with `--label COLUMN`")
        self._check_number(likely[0])
        return likely[0], why

    def number_labels(self) -> tuple[dict[str, Any], str]:
        """The field of the dataset with the number to predict for each row, or with the several that the user names,
        and the reason. Raises Unsuitable as `number_label`."""
        if len(self.named_labels) < 2:
            label, why = self.number_label()
            return {"label": label}, why
        check_columns(self.named_labels, list(self.columns), self.uri)
        for name in self.named_labels:
            self._check_number(name)
        return {"labels": list(self.named_labels)}, ""

    def are_classes(self, names: Sequence[str]) -> bool:
        """Whether the values of each column may be classes."""
        return all(self.columns[name].classes is not None for name in names)

    def _check_number(self, name: str) -> None:
        found = self.columns[name]
        if not found.is_number:
            spelling = ", or spells them such as 12,5: write them as 12.5" if found.found.like_numbers else ""
            raise Unsuitable(f'"{name}" does not hold numbers{spelling}')

    def score(self) -> str | None:
        """The column with the score of each pair of texts; None where the user names none and none is named as scores
        are. Raises Unsuitable if the named one does not hold numbers."""
        if self.named_labels:
            return self.number_label()[0]
        called = [name for name, each in self.columns.items() if _is_called(name, _NAMES_OF_SCORES) and each.is_number]
        return called[0] if len(called) == 1 else None

    def label(self) -> tuple[str, str]:
        """The column with the class of each row, and the reason. Raises Unsuitable where none is likely, or several
        are, and where it holds no classes."""
        if named := self._named_label():
            likely, why = [named], ""
        elif likely := self._called_label:
            why = ""
        else:
            likely, why = self._guessed([name for name, column in self.columns.items() if column.has_few], "few")
        if len(likely) == 1:
            if self.columns[likely[0]].classes is None:
                raise Unsuitable(
                    f'"{likely[0]}" has its own value in most rows, fractions or many different numbers, so its '
                    "values are not classes"
                )
            return likely[0], why
        problem = (
            f"could be {_listed(likely)}" if likely else f"is not clear from the values of {_listed(self.columns)}"
        )
        example = (likely or list(self.columns) or ["COLUMN"])[-1]
        raise Unsuitable(
            f"the column with the class of each row {problem}: name it, as with `--label {shlex.quote(example)}`"
        )

    def _named_label(self) -> str | None:
        """The column that the user names. Raises Unsuitable where they are several."""
        if len(self.named_labels) > 1:
            raise Unsuitable(f"it predicts one label a row, and --label names {len(self.named_labels)}")
        check_columns(self.named_labels, list(self.columns), self.uri)
        return self.named_labels[0] if self.named_labels else None

    def _guessed(self, likely: list[str], values: str) -> tuple[list[str], str]:
        """The only column of `likely`, or its last one if that is the table's last, and the reason; otherwise all of
        `likely`."""
        if len(likely) == 1:
            return likely, f"GUESSED: the only column with {values} different values"
        if likely and likely[-1] == list(self.columns)[-1]:
            others = _listed(likely[:-1])
            return likely[-1:], f"GUESSED: the last column with {values} different values; it could also be {others}"
        return likely, ""


@dataclass
class Proposal:
    """The sections of a TrainJob for the data."""

    confidence: int
    """How likely it is that this kind of model is wanted, from 0 for a guess to SURE."""
    model: dict[str, Any]
    """`spec.model`."""
    dataset: dict[str, Any] = field(default_factory=dict[str, Any])
    """Fields of `spec.dataset` besides `train`."""
    training: dict[str, Any] = field(default_factory=dict[str, Any])
    """`spec.training`."""
    comments: dict[str, str] = field(default_factory=dict[str, str])
    """Comments on `model` and on fields of the dataset."""
    notes: list[str] = field(default_factory=list[str])
    """Comments at the top."""


def _is_called(name: str, names: Sequence[str]) -> bool:
    return re.sub(r"[^a-z]", "", name.lower()) in names


def _lists_labels(kind: pa.DataType) -> bool:
    """Whether values of a type are lists of names or numbers, or objects with a flag for each name."""
    if pa.types.is_struct(kind):
        return all(_is_flag(field.type) or _lists_labels(field.type) for field in kind.fields)
    return (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and _is_plain(kind.value_type)


def _is_flag(kind: pa.DataType) -> bool:
    return pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)


def _is_plain(kind: pa.DataType) -> bool:
    return not is_nested(kind)


def is_nested(kind: pa.DataType) -> bool:
    """Whether values of a type are lists, objects or bytes."""
    return pa.types.is_nested(kind) or is_bytes(kind)


def _listed(names: Any) -> str:
    """The first ten names."""
    some = list(names)
    return ", ".join(some[:10]) + (f" or {len(some) - 10} others" if len(some) > 10 else "")
