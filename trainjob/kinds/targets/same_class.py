"""The target of a text is the other texts of its class: their vectors must be close to its own, and those of other
classes far."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
import pyarrow as pa

from trainjob.api import Dataset, TrainJobSpec
from trainjob.data.batches.examples import Examples
from trainjob.data.first_pass.split import hashes
from trainjob.data.first_pass.survey import Survey, T, Translation
from trainjob.data.read.bad_rows import BadRows, TooFewRows
from trainjob.data.read.labels import label_errors, label_numbers
from trainjob.data.read.rows import OnBadRow, Rows
from trainjob.errors import UserError, listed
from trainjob.evaluation.ranks import RankJudge, ranks_in_classes
from trainjob.evaluation.scores.retrieval import CLASS
from trainjob.kinds.look_alikes import names_with_rows
from trainjob.kinds.target import Guesses
from trainjob.kinds.targets.class_notes import label_notes
from trainjob.kinds.targets.one_class import classes_in_words
from trainjob.kinds.targets.vectors import MIN_TEXTS_OF_CLASS, VECTORS, Vectors, rows_with_texts, vector_matrix

if TYPE_CHECKING:
    from torch import nn

    from trainjob.kinds.targets.same_class_objective import SameClassObjective
    from trainjob.kinds.text_embedder.spec import TextEmbedder

MIN_BATCH_SIZE = 4
"""Rows of the smallest batch that has two texts of a class, and others."""
UNFIT = "do not have two different texts of one class and a text of another class, which the scores need"


@dataclass
class SameClassLabels:
    """Reads texts and their classes in the first pass."""

    text: list[str]
    width: int
    column: str
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    """The index of each class in order of first occurrence; `SameClass` sorts them."""

    def read(self, rows: Rows, on_bad: OnBadRow) -> tuple[Rows, np.ndarray]:
        """The labels are float64 [n, 2]."""
        return _read(rows, self.text, self.column, self.numbers, on_bad)

    def merge(self, later: "SameClassLabels") -> Translation:
        numbers = [self.numbers.setdefault(name, len(self.numbers)) for name in later.numbers]
        return lambda labels: _with_classes(labels, np.array(numbers, np.float64))

    def fit(self, survey: Survey[T], dataset: Dataset, bad: BadRows) -> "tuple[Survey[T], SameClass]":
        """Raises DataError for a single class, and where no class has two different texts."""
        assert survey.labels is not None
        uris, names = listed(dataset.train.all_uris), sorted(self.numbers)
        if len(names) < 2:
            raise TooFewRows(
                f'{uris}: every row has the label "{names[0]}" in column "{self.column}"; an embedder learns to tell '
                "the texts of a class from those of others, so at least two classes are needed"
            )
        order = np.argsort([self.numbers[name] for name in names])
        labels = _with_classes(survey.labels, order.astype(np.float64))
        if not can_be_scored(labels):
            raise TooFewRows(
                f'{uris}: no label in column "{self.column}" has two different texts; an embedder learns from classes '
                "by putting the texts of a class close together. If the label is a number that measures something, use "
                "spec.model.textRegressor"
            )
        return replace(survey, labels=labels), SameClass(self.width, self.text, names)


@dataclass(frozen=True)
class SameClass(Vectors):
    """A label is float64 [2]: the index of the class, or a negative number for one without training rows, and a hash of
    the text. Both are whole numbers that float64 holds exactly. Equal hashes are equal texts, which are not compared
    with each other."""

    text: list[str]
    names: list[str]
    """The classes, sorted."""
    counts: list[int] = field(default_factory=list[int])
    """Training rows of each class."""
    alone: list[str] = field(default_factory=list[str], compare=False)
    """Classes with a single training text; not saved."""

    def in_words(self) -> str:
        return f"{classes_in_words(self.names, self.counts)}; vectors have {self.dimensions} dimensions"

    def sizes(self) -> dict[str, int]:
        return {"classes": len(self.names), **super().sizes()}

    def completed(self, labels: np.ndarray) -> Self:
        """Counts the labels, float64 [n, 2]. Raises DataError where these classes cannot be learned."""
        if not can_be_scored(labels):
            raise TooFewRows(
                "once rows are set aside for validation, the training rows do not have two different texts of one "
                "class and a text of another: add texts to the classes, or give dataset.validation.uri"
            )
        counts = np.bincount(labels[:, 0].astype(np.int64), minlength=len(self.names)).tolist()
        texts = _texts_of_classes(labels, len(self.names))
        return replace(self, counts=counts, alone=[self.names[index] for index in np.flatnonzero(texts == 1).tolist()])

    def why_not_scored(self, labels: np.ndarray | None, metric: str | None = None) -> str | None:
        return None if labels is None or can_be_scored(labels) else UNFIT

    def read(self, rows: Rows, column: str, on_bad: OnBadRow) -> tuple[Rows, np.ndarray]:
        """The rows with a text and a label, and their labels, float64 [n, 2]. Any class can be read: vectors of its
        texts can be compared with each other."""
        numbers: dict[str, int] = {}
        rows, labels = _read(rows, self.text, column, numbers, on_bad)
        known = {name: index for index, name in enumerate(self.names)}
        return rows, _with_classes(labels, np.array([known.get(name, _unknown(name)) for name in numbers], np.float64))

    def strata(self, labels: np.ndarray | None, rows: int) -> np.ndarray:
        """The classes."""
        return np.zeros(rows, np.int64) if labels is None else labels[:, 0].astype(np.int64)

    @property
    def least_together(self) -> int:
        return MIN_TEXTS_OF_CLASS

    def label_bytes(self, labels: np.ndarray | None, rows: int) -> bytes:
        return json.dumps(self.names).encode() + (b"" if labels is None else labels.tobytes())

    def notes(self) -> list[str]:
        notes = label_notes(self.names, self.counts, may_be_lists=False)
        if self.alone:
            have = "has" if len(self.alone) == 1 else "have"
            some = names_with_rows(self.alone, dict(zip(self.names, self.counts, strict=True)))
            notes.append(
                f"{len(self.alone):,} of {len(self.names):,} classes {have} a single text to train on ({some}): it "
                "is not put close to any other, only far from those of other classes"
            )
        return notes

    def labels(self, examples: Examples, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """float64 [n, 2]."""
        assert examples.labels is not None, "these rows were prepared without labels"
        return examples.labels

    def objective(self, spec: TrainJobSpec | None, module: "nn.Module") -> "SameClassObjective":
        from trainjob.kinds.targets.same_class_objective import SameClassObjective

        if spec is None or spec.training.batch_size is None:
            raise ValueError("an embedder's loss is in the spec")
        if spec.training.batch_size < MIN_BATCH_SIZE:
            raise UserError(
                "spec.training.batchSize: an embedder learns from texts of the same class and of others in a batch: at "
                f"least {MIN_BATCH_SIZE}"
            )
        return SameClassObjective(cast("TextEmbedder", spec.model.kind).scale, spec.training.batch_size)

    @property
    def judge(self) -> RankJudge:
        return RankJudge()

    def linear(self, features: Any, labels: np.ndarray, held: Any, held_labels: np.ndarray | None = None) -> Guesses:
        """Ranks by the cosine of the features, which have length 1."""
        assert held_labels is not None
        classes, texts = held_labels.T
        return Guesses(ranks_in_classes(classes, texts, lambda rows, others: (held[rows] @ held[others].T).toarray()))

    def decoded(self, predictions: pa.Table) -> pa.Table:
        """The rank of the nearest other text of each row's class, 0 where there is none, and the name of the class."""
        vectors = vector_matrix(predictions[VECTORS[0]])
        classes, texts = self.judge.values(predictions["label"]).T
        ranks = ranks_in_classes(classes, texts, lambda rows, others: vectors[rows] @ vectors[others].T)
        names = pa.array(self.names, pa.string()).take(pa.array(classes.astype(np.int64), mask=classes < 0))
        return pa.table({"row": predictions["row"], "label": predictions["label"], "prediction": ranks, CLASS: names})

    def save(self) -> dict[str, Any]:
        of = {"dimensions": self.dimensions, "text": self.text, "names": self.names, "counts": self.counts}
        return {"same_class": of}

    @classmethod
    def load(cls, state: dict[str, Any]) -> Self:
        """Takes its fields out of the content of preprocessor.json."""
        return cls(**state.pop("same_class"))


def can_be_scored(labels: np.ndarray) -> bool:
    """Whether labels float64 [n, 2] have a class with two different texts, and another class."""
    texts = _texts_of_classes(labels, None)
    return len(texts) > 1 and int(texts.max()) > 1


def _texts_of_classes(labels: np.ndarray, classes: int | None) -> np.ndarray:
    """The number of different texts of each class in labels float64 [n, 2], int64: of the first `classes` ones, or of
    those that occur."""
    order = np.lexsort(labels.T[::-1])
    is_new = np.ones(len(labels), bool)
    is_new[1:] = (np.diff(labels[order], axis=0) != 0).any(axis=1)
    of_class = labels[order][is_new, 0]
    if classes is None:
        return np.unique(of_class, return_counts=True)[1]
    return np.bincount(of_class.astype(np.int64), minlength=classes)


def _read(
    rows: Rows, text: list[str], column: str, numbers: dict[str, int], on_bad: OnBadRow
) -> tuple[Rows, np.ndarray]:
    """The rows with a text and a label, and their labels, float64 [n, 2]; adds new classes to `numbers`."""
    rows, [texts] = rows_with_texts(rows, [text], on_bad)
    classes = label_numbers(rows, column, numbers)
    for error in label_errors(rows, column, np.flatnonzero(classes < 0)):
        on_bad(error)
    found = hashes((each.encode() for each in texts), 0) >> 11  # 53 bits, which float64 holds
    kept = np.flatnonzero(classes >= 0)
    return rows.take(kept), np.stack([classes, found], axis=1).astype(np.float64)[kept]


def _with_classes(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Replaces the classes of labels float64 [n, 2], which are indices of `classes`, by the values of `classes`,
    float64 [m]."""
    return np.stack([classes[labels[:, 0].astype(np.int64)], labels[:, 1]], axis=1)


def _unknown(name: str) -> int:
    """A negative number, of 53 bits with its sign, for a class without training rows."""
    return -1 - (int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest()) >> 12)
