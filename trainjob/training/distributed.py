"""Communication between ranks, besides that of gradients."""

from typing import Any

import torch
from torch import distributed


def world_size() -> int:
    return distributed.get_world_size() if distributed.is_initialized() else 1


def rank() -> int:
    return distributed.get_rank() if distributed.is_initialized() else 0


def sum_over_ranks(tensor: torch.Tensor) -> torch.Tensor:
    """`tensor` summed over all ranks, in place."""
    if world_size() > 1:
        distributed.all_reduce(tensor)
    return tensor


def broadcast_buffers(module: torch.nn.Module) -> None:
    """Gives every rank the buffers of rank 0, such as the running statistics of batch normalization."""
    if world_size() > 1:
        for buffer in module.buffers():
            distributed.broadcast(buffer, src=0)


def gather_on_rank_0(value: Any, group: distributed.ProcessGroup | None = None) -> list[Any] | None:
    """Every rank's value in order of rank, on rank 0; None on the others."""
    if world_size() == 1:
        return [value]
    values = [None] * world_size() if rank() == 0 else None
    distributed.gather_object(value, values, group=group)
    return values


def from_rank_0(value: Any, group: distributed.ProcessGroup | None = None) -> Any:
    """Rank 0's value, on every rank."""
    if world_size() == 1:
        return value
    values = [value]
    distributed.broadcast_object_list(values, group=group)
    return values[0]


class AllRanks:
    """All ranks, as they meet at a checkpoint: in a group of their own, so that they may while others train. To be made
    by all at once."""

    def __init__(self) -> None:
        self.rank, self.count = rank(), world_size()
        self._group: Any = distributed.new_group(backend="gloo") if self.count > 1 else None

    def gather(self, value: Any) -> list[Any] | None:
        return gather_on_rank_0(value, self._group)

    def from_first(self, value: Any) -> Any:
        return from_rank_0(value, self._group)

    def agree(self, vote: bool) -> bool:
        return self.from_first(all(self.gather(vote) or []))
