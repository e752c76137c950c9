"""Communication between ranks, besides that of gradients."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import distributed

Value = TypeVar("Value")


_own_place = 0, 1
"""This rank, and how many there are, as they were last known."""


def world_size() -> int:
    return _place()[1]


def rank() -> int:
    return _place()[0]


def _place() -> tuple[int, int]:
    """Also after the end of the process group, which Ray Train destroys when another worker is lost, while threads of
    this one still work: what they do then has to fail, rather than be done as if this were the only rank."""
    global _own_place
    if distributed.is_initialized():
        _own_place = distributed.get_rank(), distributed.get_world_size()
    return _own_place


def is_first_of_node() -> bool:
    """Whether this is the first rank on its machine, or in its pod."""
    return os.environ.get("LOCAL_RANK", "0") == "0"


@contextmanager
def first_of_node_first() -> Generator[None]:
    """Has the first rank of each node go through the block while the others wait, and then these."""
    first = is_first_of_node()
    if not first:
        barrier()
    try:
        yield
    finally:
        if first:  # whatever has happened: the others find out for themselves
            barrier()


def barrier() -> None:
    if world_size() > 1:
        distributed.barrier()


def from_first_of_node(value: Any) -> Any:
    """The value of the node's first rank, on every rank of the node."""
    if world_size() == 1:
        return value
    node = os.environ.get("NODE_RANK", "0")  # there is but one node where nobody counts them
    values: list[Any] = [None] * world_size()
    distributed.all_gather_object(values, (node, value) if is_first_of_node() else None)
    return dict(filter(None, values))[node]


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


def gather_on_all(value: Any) -> list[Any]:
    """Every rank's value in order of rank, on every rank."""
    if world_size() == 1:
        return [value]
    values: list[Any] = [None] * world_size()
    distributed.all_gather_object(values, value)
    return values


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


def from_who_has_one(value: Value | None, device: torch.device) -> Value | None:
    """`value`; where it is None, that of the first rank that has one; None where none has."""
    has = torch.zeros(world_size(), dtype=torch.int64, device=device)
    has[rank()] = value is not None
    having = sum_over_ranks(has).tolist()
    if 0 < sum(having) < len(having):
        values = [value]
        distributed.broadcast_object_list(values, src=having.index(1))
        return value if value is not None else values[0]
    return value


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
