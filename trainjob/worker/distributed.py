"""Communication between ranks, other than of gradients."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import distributed

Value = TypeVar("Value")


_rank_and_world_size = 0, 1
"""The last known values."""


def world_size() -> int:
    """The number of ranks."""
    return _last_rank_and_world_size()[1]


def rank() -> int:
    """The number of this rank, from 0."""
    return _last_rank_and_world_size()[0]


def _last_rank_and_world_size() -> tuple[int, int]:
    """The values stay the same after the process group has been destroyed. Ray Train destroys it when it loses another
    worker, while threads of this one still run: their communication must then fail, and must not be skipped as if this
    were the only rank."""
    global _rank_and_world_size
    if distributed.is_initialized():
        _rank_and_world_size = distributed.get_rank(), distributed.get_world_size()
    return _rank_and_world_size


def is_local_rank_0() -> bool:
    """Whether this is the first rank on its machine, or in its pod."""
    return os.environ.get("LOCAL_RANK", "0") == "0"


@contextmanager
def local_rank_0_first() -> Generator[None]:
    """Runs the block on the first rank of each node, and then on the other ranks, which wait for it."""
    first = is_local_rank_0()
    if not first:
        barrier()
    try:
        yield
    finally:
        if first:  # also after an error: the other ranks run into it themselves
            barrier()


def barrier() -> None:
    if world_size() > 1:
        distributed.barrier()


def from_local_rank_0(value: Any) -> Any:
    """Returns the value of the node's first rank on every rank of the node."""
    if world_size() == 1:
        return value
    node = os.environ.get("NODE_RANK", "0")  # not set on a single node
    values = gather_on_all((node, value) if is_local_rank_0() else None)
    return dict(filter(None, values))[node]


def sum_over_ranks(tensor: torch.Tensor) -> torch.Tensor:
    """Sums `tensor` over all ranks, in place."""
    if world_size() > 1:
        distributed.all_reduce(tensor)
    return tensor


def broadcast_buffers(module: torch.nn.Module) -> None:
    """Copies the buffers of rank 0, such as the running statistics of batch normalization, to every rank."""
    if world_size() > 1:
        for buffer in module.buffers():
            distributed.broadcast(buffer, src=0)


def gather_on_all(value: Any) -> list[Any]:
    """Returns every rank's value, ordered by rank, on every rank."""
    if world_size() == 1:
        return [value]
    values: list[Any] = [None] * world_size()
    distributed.all_gather_object(values, value)
    return values


def gather_on_rank_0(value: Any, group: distributed.ProcessGroup | None = None) -> list[Any] | None:
    """Returns every rank's value, ordered by rank, on rank 0, and None on the other ranks."""
    if world_size() == 1:
        return [value]
    values = [None] * world_size() if rank() == 0 else None
    distributed.gather_object(value, values, group=group)
    return values


def broadcast_from_rank_0(value: Any, group: distributed.ProcessGroup | None = None) -> Any:
    """Returns rank 0's value on every rank."""
    if world_size() == 1:
        return value
    values = [value]
    distributed.broadcast_object_list(values, group=group)
    return values[0]


def first_available(value: Value | None, device: torch.device) -> Value | None:
    """Returns `value`, or, if it is None, the value of the first rank that has one; None if no rank has one."""
    available = torch.zeros(world_size(), dtype=torch.int64, device=device)
    available[rank()] = value is not None
    ranks = sum_over_ranks(available).tolist()
    if 0 < sum(ranks) < len(ranks):
        values = [value]
        distributed.broadcast_object_list(values, src=ranks.index(1))
        return value if value is not None else values[0]
    return value


def agree(vote: bool, group: distributed.ProcessGroup | None = None) -> bool:
    """Returns whether every rank votes True."""
    return broadcast_from_rank_0(all(gather_on_rank_0(vote, group) or []), group)


def background_group() -> distributed.ProcessGroup | None:
    """A process group in which a thread communicates while training continues; None for a single rank. All ranks must
    call this at the same point."""
    if world_size() == 1:
        return None
    group: Any = distributed.new_group(backend="gloo")
    return group
