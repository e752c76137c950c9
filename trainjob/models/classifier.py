"""The base class of text and image classifiers."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Generic, TypeVar

from torch import Tensor, nn

from trainjob.api import Loss

Network = TypeVar("Network", bound=nn.Module)


class Classifier(nn.Module, ABC, Generic[Network]):
    """Computes logits, float32 [n, C], from the inputs of a batch; `network` is the module whose weights are saved."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    @property
    @abstractmethod
    def problem_type(self) -> str:
        """As in transformers: single_label_classification (softmax) or multi_label_classification (sigmoids)."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write model.safetensors and config.json."""

    def probabilities(self, logits: Tensor) -> Tensor:
        """Probabilities [n, C] of logits [n, C]; with binary cross-entropy, those of a row need not add up to 1."""
        return logits.sigmoid() if self.problem_type == "multi_label_classification" else logits.softmax(dim=1)


def problem_type(loss: Loss) -> str:
    """What transformers calls the problem that `loss` solves."""
    return "single_label_classification" if loss.cross_entropy is not None else "multi_label_classification"
