"""The divisor of the loss."""

import torch


def loss_divisor(weight: torch.Tensor, ranks: int) -> torch.Tensor:
    """The number that each rank divides its sum of losses by, float32 [].

    An optimizer step minimizes a mean: the sum of the losses of all batches of the step, on all `ranks`, divided by the
    `weight` of these batches, float32 []: the number of their rows, or of a language model's learned tokens
    (`Batch.weight`). So neither the number of workers, nor micro-batches, nor gradient accumulation changes a step.

    The gradients of the ranks are averaged, not summed, so each rank divides by the weight per rank. Where nothing
    counts, all losses are 0, and the weight is taken as 1.
    """
    return weight.clamp(min=1) / ranks
