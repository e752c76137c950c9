"""The cross-entropy of tokens, block by block: the logits of a batch are the largest array of all. Copies of it in
float32 would take more memory than the model, and on a CPU much of the time."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from trainjob.data.batches.examples import IGNORED
from trainjob.models.stand_in import is_gpu

CPU_BLOCK, GPU_BLOCK = 2**18, 2**27
"""Logits that are taken at once: as many as a CPU's cache holds in float32, or 512 MiB of them on a GPU."""


def token_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """The cross-entropy at each position of logits [n, length, tokens], of any floating type, and labels [n, length], 0
    where nothing is learned: float32 [n * length]. Computed in float32. If gradients are computed, they overwrite the
    logits."""
    return _TokenLosses.apply(logits.flatten(0, 1), labels.flatten())


def losses_to_compile(logits: Tensor, labels: Tensor) -> Tensor:
    """The same losses for `torch.compile`, which reads the logits once, keeps no copy of them and needs no blocks."""
    flat = logits.flatten(0, 1).float()
    return functional.cross_entropy(flat, labels.flatten(), ignore_index=IGNORED, reduction="none")


class _TokenLosses(torch.autograd.Function):
    """With p the softmax of a position's logits, the loss is -log p[label] and the gradient of the logits p - 1[label].
    The label's own gradient is computed from the loss, because p - 1 loses precision in 16 bits if p is near 1. The
    gradient overwrites the logits: an output layer does not need its result for the backward pass."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor) -> Tensor:  # pyrefly: ignore[bad-override]
        learned, targets = labels != IGNORED, labels.clamp(min=0)[:, None]
        losses = logits.new_empty(len(logits), dtype=torch.float32)
        for block in _blocks(logits):
            own, target = logits[block], targets[block]
            log_p = torch.log_softmax(own, dim=1, dtype=torch.float32)
            losses[block] = -log_p.gather(1, target)[:, 0]
            if ctx.needs_input_grad[0]:
                of_labels = torch.expm1(-losses[block])[:, None].to(own.dtype)
                torch.exp(log_p, out=own).scatter_(1, target, of_labels)
        ctx.save_for_backward(logits, learned)
        return losses * learned

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # pyrefly: ignore[bad-override]
        found, learned = ctx.saved_tensors
        scale = (gradient * learned)[:, None]
        for block in _blocks(found):
            found[block].mul_(scale[block])
        return found, None


def _blocks(logits: Tensor) -> list[slice]:
    """Rows that are taken together."""
    rows = max(1, (GPU_BLOCK if is_gpu(logits.device) else CPU_BLOCK) // logits.shape[1])
    return [slice(start, start + rows) for start in range(0, len(logits), rows)]
