"""Each row has one class of several."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from trainjob.api import TrainJobSpec
from trainjob.data.batches.examples import Examples
from trainjob.data.read.csv_injection import OF_CLASS, PREDICTION, PROBABILITY
from trainjob.data.read.labels import known_indices, label_errors
from trainjob.data.read.rows import OnBadRow, Rows
from trainjob.evaluation.paired import ClassJudge
from trainjob.evaluation.predictions import with_names
from trainjob.kinds.target import Guesses, Target
from trainjob.kinds.targets.class_baselines import logistic_regression
from trainjob.kinds.targets.class_notes import class_sizes, label_notes
from trainjob.kinds.targets.class_reply import Prediction, class_replies

if TYPE_CHECKING:
    from torch import Tensor

    from trainjob.kinds.targets.classification import Classification
    from trainjob.models.classifier import AnsweringClassifier

SHOWN_CLASSES = 20


@dataclass(frozen=True)
class OneClass(Target):
    """Labels are class names; the network has an output for each class."""

    names: list[str]
    """The classes, sorted."""
    class_counts: list[int]
    """Training rows of each class."""
    left_out: list[str] = field(default_factory=list[str], compare=False)
    """Classes of the training source with too few rows to learn them; not saved."""

    @property
    def classes(self) -> list[str]:
        return self.names

    @property
    def chooses_one_class(self) -> bool:
        return True

    @property
    def width(self) -> int:
        return len(self.names)

    def sizes(self) -> dict[str, int]:
        return {"classes": len(self.names)}

    def in_words(self) -> str:
        return classes_in_words(self.names, self.class_counts)

    def lenient(self) -> Self:
        return replace(self, names=sorted([*self.names, *self.left_out]))

    def completed(self, labels: np.ndarray) -> Self:
        """Counts the labels, int64 [n]."""
        return replace(self, class_counts=np.bincount(labels, minlength=len(self.names)).tolist())

    def read(self, rows: Rows, column: str, on_bad: OnBadRow) -> tuple[Rows, np.ndarray]:
        """The rows whose label is one of the classes, and its index, int64 [n]."""
        labels = known_indices(rows, column, self.names)
        for error in label_errors(rows, column, np.flatnonzero(labels < 0), self.names):
            on_bad(error)
        return rows.take(np.flatnonzero(labels >= 0)), labels[labels >= 0]

    def strata(self, labels: np.ndarray | None, rows: int) -> np.ndarray:
        """The classes."""
        return np.zeros(rows, np.int64) if labels is None else labels

    def label_bytes(self, labels: np.ndarray | None, rows: int) -> bytes:
        return json.dumps(self.names).encode() + self.strata(labels, rows).tobytes()

    def profile(self) -> dict[str, Any]:
        return {"class_sizes": class_sizes(self.names, self.class_counts)}

    def notes(self) -> list[str]:
        return label_notes(self.names, self.class_counts)

    def labels(self, examples: Examples, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """int64 [n]."""
        assert examples.labels is not None, "these rows were prepared without labels"
        return examples.labels

    def unlabelled(self, rows: int) -> np.ndarray:
        return np.full(rows, -1)

    def objective(self, spec: TrainJobSpec | None, module: "AnsweringClassifier") -> "Classification":
        """Raises UserError if the class weights do not name exactly the classes."""
        from trainjob.kinds.targets.classification import Classification

        if spec is None:
            raise ValueError("a classifier's loss is in the spec")
        return Classification(spec, self, module)

    def answer(self, outputs: "Tensor", module: "AnsweringClassifier") -> pa.Table:
        """The most probable class of each row, its probability, and that of each class, from logits [n, C]."""
        probabilities = module.probabilities(outputs).cpu().numpy()
        columns: dict[str, Any] = {
            PREDICTION: pa.array(self.names, pa.string()).take(pa.array(outputs.argmax(dim=1).cpu().numpy())),
            PROBABILITY: pa.array(probabilities.max(axis=1, initial=0)),
        }
        return pa.table(columns | {f"{OF_CLASS}{name}": probabilities[:, i] for i, name in enumerate(self.names)})

    @property
    def reply_type(self) -> type[Prediction]:
        return Prediction

    def replies(self, outputs: "Tensor", module: "AnsweringClassifier") -> list[Prediction]:
        return class_replies(module.probabilities(outputs).cpu().numpy(), self.names)

    @property
    def judge(self) -> ClassJudge:
        return ClassJudge(self.names)

    def constant(self, rows: int) -> Guesses:
        """The most frequent class of the training rows, and its share."""
        shares = np.array(self.class_counts, np.float32) / sum(self.class_counts)
        return Guesses(np.full(rows, shares.argmax()), np.full(rows, shares.max()))

    def linear(self, features: Any, labels: np.ndarray, held: Any, held_labels: np.ndarray | None = None) -> Guesses:
        probabilities, weights = logistic_regression(features, labels, held, len(self.names))
        return Guesses(probabilities.argmax(axis=1), probabilities.max(axis=1), weights)

    @property
    def tree_objective(self) -> dict[str, Any]:
        if len(self.names) == 2:
            return {"objective": "binary"}
        return {"objective": "multiclass", "num_class": len(self.names)}

    def tree_outputs(self, predicted: list[np.ndarray]) -> np.ndarray:
        """The logarithms of the probabilities, whose softmax they are."""
        (probabilities,) = predicted
        if probabilities.ndim == 1:
            probabilities = np.stack([1 - probabilities, probabilities], axis=1)
        return np.log(np.maximum(probabilities, np.finfo(np.float64).tiny))

    def boosted(self, outputs: np.ndarray) -> Guesses:
        return Guesses(outputs.argmax(axis=1), np.exp(outputs.max(axis=1)).astype(np.float32))

    def decoded(self, predictions: pa.Table) -> pa.Table:
        return with_names(predictions, self.names)

    @property
    def has_threshold(self) -> bool:
        return len(self.names) == 2

    def save(self) -> dict[str, Any]:
        return {"classes": self.names, "class_counts": self.class_counts}

    @classmethod
    def load(cls, state: dict[str, Any]) -> Self:
        """Takes its fields out of the content of preprocessor.json."""
        return cls(state.pop("classes"), state.pop("class_counts"))


def classes_in_words(classes: list[str], counts: list[int]) -> str:
    """The number of classes, and the largest with their training rows, of which `counts` has the numbers."""
    rows = dict(zip(classes, counts, strict=True))
    largest = sorted(classes, key=lambda name: -rows[name])
    shown = ", ".join(f"{name} ({rows[name]:,})" for name in largest[:SHOWN_CLASSES])
    more = f" and {len(largest) - SHOWN_CLASSES:,} more" if len(largest) > SHOWN_CLASSES else ""
    return f"{len(largest):,} classes; training rows of each: {shown}{more}"
