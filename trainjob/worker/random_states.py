"""The random states of Python, NumPy and PyTorch: seeds, saves and restores them."""

import random
from typing import Any

import numpy as np
import torch


def seed(number: int) -> None:
    random.seed(number)
    np.random.seed(number % 2**32)
    torch.manual_seed(number)


def random_states(device: torch.device) -> dict[str, Any]:
    """The random states of this process, in types that are loaded without executing code."""
    numpy = np.random.get_state(legacy=False)
    numpy["state"]["key"] = numpy["state"]["key"].tolist()
    return {
        "python": random.getstate(),
        "numpy": numpy,
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state(device) if device.type == "cuda" else None,
    }


def set_random_states(states: dict[str, Any], device: torch.device) -> None:
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
    if states["cuda"] is not None and device.type == "cuda":
        torch.cuda.set_rng_state(states["cuda"], device)
