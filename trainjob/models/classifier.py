"""The base class of text and image classifiers."""

from abc import abstractmethod

from torch import Tensor

from trainjob.api import Loss
from trainjob.models.trainable import Network, Trainable


class Classifier(Trainable[Network]):
    """Computes logits, float32 [n, C], from the inputs of a batch."""

    @property
    @abstractmethod
    def problem_type(self) -> str:
        """As in transformers: single_label_classification (softmax) or multi_label_classification (sigmoids)."""

    def probabilities(self, logits: Tensor) -> Tensor:
        """Probabilities [n, C] of logits [n, C]; with binary cross-entropy, those of a row need not add up to 1."""
        return logits.sigmoid() if self.problem_type == "multi_label_classification" else logits.softmax(dim=1)


def problem_type(loss: Loss) -> str:
    """The name in transformers of the problem that `loss` solves."""
    return "single_label_classification" if loss.cross_entropy is not None else "multi_label_classification"
