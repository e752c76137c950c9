"""The base class of all models that are trained here."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Generic, TypeVar

from torch import Tensor, nn

Network = TypeVar("Network", bound=nn.Module)


class Trainable(nn.Module, ABC, Generic[Network]):
    """Answers the inputs of a batch; `network` is the module whose weights are saved."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    @property
    def weights(self) -> dict[str, Tensor]:
        """What is saved of the network, parameters and buffers, by name; of those that are tied, the first."""
        found: dict[int, tuple[str, Tensor]] = {}
        for name, tensor in self.network.state_dict(keep_vars=True).items():
            found.setdefault(id(tensor), (name, tensor))
        return dict(found.values())

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write model.safetensors and config.json."""

    @abstractmethod
    def save_config(self, folder: Path) -> None:
        """Write what `save` does but for the weights."""
