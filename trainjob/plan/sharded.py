"""The memory of a worker that has a shard of the model (FSDP2)."""

from typing import Any

from torch import nn

from trainjob.models import Trainable


def weights_of_units(module: Trainable[Any]) -> tuple[int, int]:
    """The number of weights outside of layers, and in the largest layer."""
    *layers, whole = module.sharding_units()
    sizes = [_size(layer) for layer in layers]
    return _size(whole) - sum(sizes), max(sizes, default=0)


def gathered_bytes(outside: int, layer: int, bytes_per_weight: int) -> int:
    """Bytes of gathered weights and gradients at the peak, when the backward pass begins: the weights outside of layers
    and their gradients; the weights of two consecutive layers; and the gradients of one layer, with the float32 copy
    that is summed over the ranks."""
    return 2 * outside * bytes_per_weight + layer * (3 * bytes_per_weight + 4)


def _size(module: nn.Module) -> int:
    return sum(weight.numel() for weight in module.parameters())
