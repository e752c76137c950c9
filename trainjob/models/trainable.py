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
        """The saved tensors of the network, parameters and buffers, by name; only the first of tied tensors."""
        found: dict[int, tuple[str, Tensor]] = {}
        for name, tensor in self.network.state_dict(keep_vars=True).items():
            found.setdefault(id(tensor), (name, tensor))
        return dict(found.values())

    def rate_factor(self, parameter: nn.Parameter) -> float:
        """The learning rate of a weight as a multiple of the optimizer's, which is that of most weights."""
        return 1.0

    def sharding_units(self) -> Iterator[nn.Module]:
        """The modules that are sharded separately, this one last. Weights on the meta device are created when their
        unit is yielded, so that they can be sharded before the next unit's weights are created."""
        yield self

    def recompute_activations(self) -> None:
        """Makes the backward pass recompute the layers' activations instead of keeping them. Raises UserError if the
        network cannot."""
        raise UserError("spec.training.activationCheckpointing: this network cannot")

    def use_plain_attention(self) -> None:
        """Computes attention with matrix products only. See docs/decisions/attention-on-cpus.md."""

    def round_weights(self) -> None:
        """Makes the following bfloat16 passes round all weights at once, if the network can."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write model.safetensors and config.json."""

    @abstractmethod
    def save_config(self, folder: Path) -> None:
        """Write the files of `save` except the weights."""
