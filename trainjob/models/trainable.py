"""The base class of all models that are trained here."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Generic, TypeVar

import safetensors.torch
from torch import nn

Network = TypeVar("Network", bound=nn.Module)


class Trainable(nn.Module, ABC, Generic[Network]):
    """Answers the inputs of a batch, in float32; `network` is the module whose weights are saved."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write model.safetensors and config.json."""

    def load_weights(self, folder: Path) -> None:
        """Load the weights that `save` wrote for a model of the same architecture."""
        self.network.load_state_dict(safetensors.torch.load_file(folder / "model.safetensors"))
