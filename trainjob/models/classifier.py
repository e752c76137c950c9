"""The base classes of text and image classifiers."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

from trainjob.api import Loss
from trainjob.models.trainable import Network, Trainable


class AnsweringClassifier(nn.Module, ABC):
    """Computes logits, float32 [n, C], from the inputs of a batch. It need not be able to learn."""

    @property
    @abstractmethod
    def problem_type(self) -> str:
        """As in transformers: single_label_classification (softmax) or multi_label_classification (sigmoids)."""

    def probabilities(self, logits: Tensor) -> Tensor:
        """Probabilities [n, C] of logits [n, C]; with binary cross-entropy, those of a row need not add up to 1."""
        return logits.sigmoid() if self.problem_type == "multi_label_classification" else logits.softmax(dim=1)


class TrainableClassifier(AnsweringClassifier, Trainable[Network]):
    """A classifier that is trained and saved."""


def problem_type(loss: Loss) -> str:
    """The name in transformers of the problem that `loss` solves."""
    return "single_label_classification" if loss.cross_entropy is not None else "multi_label_classification"
