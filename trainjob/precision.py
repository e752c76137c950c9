"""`spec.training.precision`, and what the hardware computes fastest."""

import torch

PRECISIONS = {"bf16": torch.bfloat16, "fp16": torch.float16, "float32": torch.float32}


def resolve_precision(precision: str, device: torch.device) -> torch.dtype:
    """The data type of the forward pass."""
    if precision != "auto":
        return PRECISIONS[precision]
    capability = torch.cuda.get_device_capability(device) if device.type == "cuda" else None
    return fastest(multiplies_bfloat16(device), capability)


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


def multiplies_bfloat16(device: torch.device) -> bool:
    """Whether the hardware has units for it."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name) for name in ("amx_bf16", "avx512_bf16"))
