"""RMS norms by PyTorch's `rms_norm`, which is one operation on a GPU. In transformers they are a dozen operations, most
of which read and write all activations in float32."""

import inspect
from functools import cache
from typing import Any

import torch
from torch import nn

CHANNELS = 8
EPSILON = 0.1


def use_pytorch_norms(network: nn.Module) -> None:
    """Replaces the parts of `network` that compute the same as PyTorch's RMS norm. Weights keep their names."""
    for part in [*network.modules()]:
        for name, norm in part.named_children():
            if _is_rms_norm(type(norm)):
                setattr(part, name, _torchs(norm))


def _torchs(norm: Any) -> nn.RMSNorm:
    replacement = nn.RMSNorm(norm.weight.shape, norm.variance_epsilon, device="meta")
    replacement.weight = norm.weight
    return replacement.train(norm.training)


@cache
@torch.no_grad()
def _is_rms_norm(kind: Any) -> bool:
    """Whether parts of this class compute what PyTorch's RMS norm does. Some multiply by 1 + weight, or by a gate."""
    takes = [*inspect.signature(kind.forward).parameters]
    if not kind.__name__.endswith("RMSNorm") or takes != ["self", "hidden_states"]:
        return False
    inputs = torch.linspace(-1, 2, 3 * CHANNELS, device="cpu").view(3, CHANNELS)
    try:
        with torch.device("cpu"):
            norm = kind(CHANNELS, eps=EPSILON)
        norm.weight.copy_(torch.linspace(0.5, 2, CHANNELS, device="cpu"))
        return torch.allclose(norm(inputs), _torchs(norm)(inputs))
    except (AttributeError, TypeError):
        return False
