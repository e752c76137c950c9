"""Common parts of the classifiers' specs."""

from typing import Annotated

from pydantic import Field

from trainjob.kinds.facts import SCRATCH_RATE, Direction
from trainjob.schema.base import DependsOnSpec, OneOf, StrictModel
from trainjob.schema.fields import Dropout

Weight = Annotated[float, Field(gt=0)]

METRICS: dict[str, Direction] = {
    "validation_loss": "min",
    "validation_accuracy": "max",
    "validation_precision": "max",
    "validation_recall": "max",
    "validation_f1": "max",
    "train_loss": "min",
}
"""Precision, recall and F1 are macro averages. With several labels a row, accuracy counts rows whose labels are all
right."""
LABEL_METRICS: dict[str, Direction] = {"validation_micro_f1": "max", "validation_average_precision": "max"}
"""Metrics only for rows with several labels."""
SCORES = ("trainjob.evaluation.scores.classes:ClassificationScores",)
SCORES_OF_LABELS = (*SCORES, "trainjob.evaluation.scores.labels:LabelsScores")
"""The scores of rows with one class, and of rows with several labels."""
_FINE_TUNING_RATE = 1e-4
"""At 1e-3, pretrained weights lose much of their knowledge."""
_HEAD_RATE = 1e-1
"""A linear head on fixed features."""


class Loss(OneOf):
    """The loss, averaged over samples."""

    class CrossEntropy(StrictModel):
        """Softmax cross-entropy over the classes."""

    class BinaryCrossEntropy(StrictModel):
        """One sigmoid per class against the one-hot label."""

    cross_entropy: CrossEntropy | None = None
    """Softmax cross-entropy over the classes."""
    binary_cross_entropy: BinaryCrossEntropy | None = None
    """One sigmoid per class against the one-hot label."""


SEVERAL_LABELS_LOSS = Loss(binary_cross_entropy=Loss.BinaryCrossEntropy())
"""The loss of rows with several labels."""
ONE_CLASS_LOSS = "a softmax gives each row one class; write `binaryCrossEntropy: {}` or leave loss out"
"""The error for crossEntropy with several labels, and what to write instead."""


class ClassWeights(OneOf):
    """Weight of each class in the loss."""

    class Balanced(StrictModel):
        """Rows / (classes * rows of the class), counted on the training set. With several labels a row: rows without
        the label / rows with it."""

    balanced: Balanced | None = None
    """Weights inverse to the classes' frequency in the training set."""
    values: dict[str, Weight] | None = None
    """A weight for each class by name; every class must be named."""


class Classifier(OneOf):
    """Common fields of text and image classifiers."""

    dropout: Dropout = 0.1
    """Probability of dropping an activation before the linear head."""
    loss: Annotated[Loss, DependsOnSpec()] = Loss(cross_entropy=Loss.CrossEntropy())
    """The loss function: by default crossEntropy and, with several labels a row, binaryCrossEntropy, which alone allows
    them."""
    class_weights: ClassWeights | None = None
    """Weight of each class in the loss, including reported losses; by default, every row has the same weight. With
    several labels a row, the weight of a label counts for the rows that have it."""

    @property
    def excludes_several_labels(self) -> bool:
        """Whether the YAML asks for a softmax. `trainjob.api.spec_rules` has the same as an expression."""
        return "loss" in self.model_fields_set and self.loss.cross_entropy is not None

    @staticmethod
    def rate_of(pretrained: str | None, freeze_encoder: bool) -> float:
        """The default learning rate."""
        if pretrained is None:
            return SCRATCH_RATE
        return _HEAD_RATE if freeze_encoder else _FINE_TUNING_RATE
