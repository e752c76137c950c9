"""Optimizers, learning-rate schedules and precision, from `spec.training`."""

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch.optim.lr_scheduler import LambdaLR, LRScheduler, ReduceLROnPlateau

from trainjob.api import Optimizer, Scheduler, WarmUp


def build_optimizer(spec: Optimizer, parameters: Iterable[torch.nn.Parameter]) -> torch.optim.Optimizer:
    """Weight decay is for matrices: biases and the weights of norms, of one dimension, are left alone."""
    kinds: dict[bool, list[torch.nn.Parameter]] = {True: [], False: []}
    for parameter in parameters:
        if parameter.requires_grad:
            kinds[parameter.ndim > 1].append(parameter)
    decayed: dict[str, Any] = {"params": kinds[True]}
    others: dict[str, Any] = {"params": kinds[False], "weight_decay": 0.0}
    trained = [group for group in (decayed, others) if group["params"]]
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
    """The learning rate after `step` of `steps` optimizer steps, as a factor on its peak."""
    warm_up = _warm_up_steps(spec.warmup_fraction, steps)
    if step < warm_up:
        return (step + 1) / (warm_up + 1)
    remaining = (steps - step) / max(1, steps - warm_up)
    return 0.5 * (1 - math.cos(math.pi * remaining)) if cosine else remaining


PRECISIONS = {"bf16": torch.bfloat16, "fp16": torch.float16, "float32": torch.float32}


def resolve_precision(precision: str, device: torch.device) -> torch.dtype:
    """The data type of the forward pass."""
    if precision != "auto":
        return PRECISIONS[precision]
    capability = torch.cuda.get_device_capability(device) if device.type == "cuda" else None
    return fastest(_multiplies_bfloat16(device), capability)


def fastest(multiplies_bfloat16: bool, capability: tuple[int, int] | None) -> torch.dtype:
    """What the hardware multiplies matrices of fastest; a GPU has a compute capability. Those from 7.0 on have units
    for float16: https://docs.nvidia.com/cuda/cuda-c-programming-guide/#features-and-technical-specifications"""
    if multiplies_bfloat16:
        return torch.bfloat16
    return torch.float16 if capability is not None and capability >= (7, 0) else torch.float32


def allow_tf32(precision: str) -> None:
    """Has GPUs multiply what stays in float32 as TF32, of 10 bits of mantissa, unless float32 is what was asked for."""
    exact = precision == "float32"
    torch.set_float32_matmul_precision("highest" if exact else "high")
    torch.backends.cudnn.allow_tf32 = not exact


def _multiplies_bfloat16(device: torch.device) -> bool:
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name) for name in ("amx_bf16", "avx512_bf16"))


def why_not_compiled(error: Exception) -> str | None:
    """Why `torch.compile` could not compile a model, where `error` is of that."""
    from torch._dynamo.exc import TorchDynamoException  # its classes have no public name

    if not isinstance(error, TorchDynamoException):
        return None
    return (
        f"PyTorch cannot compile this model here ({str(error).partition(chr(10))[0].strip()}): it needs a C++ compiler "
        "such as g++, and for GPUs Triton; or leave `compile` out"
    )
