"""Optimizers and learning-rate schedules, from `spec.training`."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.optim.lr_scheduler import LambdaLR, LRScheduler, ReduceLROnPlateau

from trainjob.api import Optimizer, Scheduler, WarmUp


def build_optimizer(
    spec: Optimizer,
    parameters: Iterable[torch.nn.Parameter],
    rate_factor: Callable[[torch.nn.Parameter], float] = lambda _: 1.0,
) -> torch.optim.Optimizer:
    """Weight decay applies to matrices only: not to biases and the weights of norms, which have one dimension. A
    weight's learning rate is the spec's, times its `rate_factor`."""
    rate = getattr(spec, spec.chosen).learning_rate
    kinds = defaultdict[tuple[float, bool], list[torch.nn.Parameter]](list)
    for parameter in parameters:
        if parameter.requires_grad:
            kinds[rate_factor(parameter), parameter.ndim > 1].append(parameter)
    trained: list[dict[str, Any]] = [
        {"params": kinds[factor, decays], "lr": factor * rate, **({} if decays else {"weight_decay": 0.0})}
        for factor, decays in sorted(kinds, reverse=True)
    ]
    if spec.sgd is not None:
        sgd = spec.sgd
        return torch.optim.SGD(
            trained, sgd.learning_rate, sgd.momentum, weight_decay=sgd.weight_decay, nesterov=sgd.nesterov
        )
    adam, kind = (spec.adam, torch.optim.Adam) if spec.adam is not None else (spec.adam_w, torch.optim.AdamW)
    assert adam is not None
    betas = (adam.betas[0], adam.betas[1])
    return kind(trained, adam.learning_rate, betas, adam.epsilon, adam.weight_decay, fused=True)


def build_scheduler(
    spec: Scheduler, optimizer: torch.optim.Optimizer, steps: int
) -> LRScheduler | ReduceLROnPlateau | None:
    """The schedule for a run of `steps` optimizer steps."""
    if spec.constant is not None:
        warm_up = _warm_up_steps(spec.constant.warmup_fraction, steps)
        return LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / (warm_up + 1))) if warm_up else None
    if spec.reduce_on_plateau is not None:
        plateau = spec.reduce_on_plateau
        return ReduceLROnPlateau(optimizer, factor=plateau.factor, patience=plateau.patience)
    falling = spec.cosine or spec.linear
    assert falling is not None
    return LambdaLR(optimizer, lambda step: _rate_factor(falling, step, steps, cosine=spec.cosine is not None))


def _warm_up_steps(fraction: float, steps: int) -> int:
    return round(fraction * steps)


def _rate_factor(spec: WarmUp, step: int, steps: int, *, cosine: bool) -> float:
    """The learning rate after `step` of `steps` optimizer steps, as a fraction of its peak."""
    warm_up = _warm_up_steps(spec.warmup_fraction, steps)
    if step < warm_up:
        return (step + 1) / (warm_up + 1)
    remaining = (steps - step) / max(1, steps - warm_up)
    return 0.5 * (1 - math.cos(math.pi * remaining)) if cosine else remaining


def why_not_compiled(error: Exception) -> str | None:
    """Why `torch.compile` could not compile a model; None if `error` has another cause."""
    from torch._dynamo.exc import TorchDynamoException  # its classes have no public name

    if not isinstance(error, TorchDynamoException):
        return None
    return (
        f"PyTorch cannot compile this model here ({str(error).partition(chr(10))[0].strip()}): it needs a C++ compiler "
        "such as g++, and for GPUs Triton; or leave `compile` out"
    )
