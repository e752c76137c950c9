"""The base classes of networks that answer each row. As in transformers, they include regressors."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

from trainjob.api import Loss
from trainjob.models.trainable import Network, Trainable


class AnsweringClassifier(nn.Module, ABC):
    """Computes logits or numbers, float32 [n, C], from the inputs of a batch. It need not be trainable."""

    @property
    @abstractmethod
    def problem_type(self) -> str:
        """As in transformers: single_label_classification (softmax), multi_label_classification (sigmoids) or
        regression."""

    def probabilities(self, logits: Tensor) -> Tensor:
        """Probabilities [n, C] of logits [n, C]; with binary cross-entropy, those of a row need not add up to 1."""
        return logits.sigmoid() if self.problem_type == "multi_label_classification" else logits.softmax(dim=1)


class TrainableClassifier(AnsweringClassifier, Trainable[Network]):
    """A classifier or regressor that is trained and saved."""


def problem_type(loss: Loss) -> str:
    """The name in transformers of the problem that `loss` solves."""
    return "single_label_classification" if loss.cross_entropy is not None else "multi_label_classification"
