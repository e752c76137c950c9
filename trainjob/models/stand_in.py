"""Uses the CPU instead of a GPU to compute shapes, from tensors without data."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

import torch

_for_gpu: ContextVar[bool] = ContextVar("for_gpu", default=False)


@contextmanager
def cpu_for_gpu() -> Generator[None]:
    """Within the block, networks on the CPU compute with the tensors that they would have on a GPU."""
    token = _for_gpu.set(True)
    try:
        yield
    finally:
        _for_gpu.reset(token)


def is_cpu_for_gpu() -> bool:
    return _for_gpu.get()


def is_gpu(device: torch.device) -> bool:
    """Whether the device is a GPU, or the CPU in its place."""
    return device.type == "cuda" or is_cpu_for_gpu()
