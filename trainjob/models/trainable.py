"""The base class of all models that are trained here."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Generic, TypeVar

from torch import Tensor, nn

from trainjob.errors import UserError

Network = TypeVar("Network", bound=nn.Module)


class Trainable(nn.Module, ABC, Generic[Network]):
    """Answers the inputs of a batch; `network` is the module whose weights are saved."""

    rounds = False
    """Whether a pass rounds all weights to bfloat16 at once."""

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

    def parts(self) -> Iterator[nn.Module]:
        """The modules that are sharded each by itself, this one last. Weights that lie on the meta device are made when
        their part is given, so that they can be sharded before those of the next part are made."""
        yield self

    def recompute_activations(self) -> None:
        """Has the backward pass compute the layers' activations anew instead of keeping them. Raises UserError where
        the network cannot."""
        raise UserError("spec.training.activationCheckpointing: this network cannot")

    def use_plain_attention(self) -> None:
        """Has attention computed by products of matrices alone. See docs/decisions/attention-on-cpus.md."""

    def round_weights(self) -> None:
        """Has the passes to come, which are in bfloat16, round all weights at once, where the network can."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write model.safetensors and config.json."""

    @abstractmethod
    def save_config(self, folder: Path) -> None:
        """Write what `save` does but for the weights."""
