"""Gathers the vectors of a batch from all ranks, for losses that compare each row with the others."""

from typing import Any, NamedTuple

import torch
from torch import Tensor, distributed
from torch.nn import functional


class EveryRow(NamedTuple):
    """The rows of a batch on all ranks; where no gradients are computed, only this rank's."""

    vectors: Tensor
    """[m, ...]."""
    labels: Tensor
    """[m, k]."""
    is_there: Tensor
    """False for rows that only pad a rank's batch, bool [m]."""
    first: int
    """The index of this rank's first row."""


def of_all_ranks(vectors: Tensor, labels: Tensor, is_real: bool) -> EveryRow:
    """Gathers the vectors [n, ...] and labels [n, k] of all ranks. Every rank must call this at the same point. The
    rows of a rank where `is_real` is False do not count."""
    is_there = torch.ones_like(labels[:, 0], dtype=torch.bool)
    if not (torch.is_grad_enabled() and distributed.is_initialized() and distributed.get_world_size() > 1):
        return EveryRow(vectors, labels, is_there, 0)
    most = int(_gathered(torch.tensor([len(labels)], device=labels.device)).max())

    def filled(tensor: Tensor) -> Tensor:
        return functional.pad(tensor, (0, 0) * (tensor.dim() - 1) + (0, most - len(tensor)))

    return EveryRow(
        _GatherVectors.apply(filled(vectors)),
        _gathered(filled(labels)),
        _gathered(filled(is_there.long() * is_real)).bool(),
        distributed.get_rank() * most,
    )


class _GatherVectors(torch.autograd.Function):
    """Gathers each rank's vectors, [n, ...], into one array, [ranks * n, ...]. The gradient of a rank's vectors is the
    sum of their gradients on all ranks."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor) -> Tensor:  # pyrefly: ignore[bad-override]
        return _gathered(vectors)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (gradient,) = gradients
        gradient = gradient.contiguous()
        distributed.all_reduce(gradient)
        return gradient.chunk(distributed.get_world_size())[distributed.get_rank()]


def _gathered(tensor: Tensor) -> Tensor:
    """The tensors of all ranks, each [n, ...], one after the other."""
    ranks = distributed.get_world_size()
    found = tensor.new_empty(ranks * len(tensor), *tensor.shape[1:])
    distributed.all_gather_into_tensor(found, tensor.contiguous())
    return found
