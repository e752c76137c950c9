"""Resolves `spec.training.precision` to the data type that the hardware multiplies fastest."""

import torch

PRECISIONS = {"bf16": torch.bfloat16, "fp16": torch.float16, "float32": torch.float32}


def resolve_precision(precision: str, device: torch.device) -> torch.dtype:
    """The data type of the forward pass."""
    if precision != "auto":
        return PRECISIONS[precision]
    return fastest(multiplies_bfloat16(device), _capability(device))


def has_units(dtype: torch.dtype, device: torch.device) -> bool:
    """Whether the hardware computes in this data type, and does not emulate it."""
    if dtype == torch.float16:
        return fastest(False, _capability(device)) == torch.float16
    return dtype != torch.bfloat16 or multiplies_bfloat16(device)


def _capability(device: torch.device) -> tuple[int, int] | None:
    return torch.cuda.get_device_capability(device) if device.type == "cuda" else None


def fastest(multiplies_bfloat16: bool, capability: tuple[int, int] | None) -> torch.dtype:
    """The data type in which the hardware multiplies matrices fastest. `capability` is a GPU's compute capability; GPUs
    from 7.0 on have float16 units: https://docs.nvidia.com/cuda/cuda-c-programming-guide/#features-and-technical-specifications"""
    if multiplies_bfloat16:
        return torch.bfloat16
    return torch.float16 if capability is not None and capability >= (7, 0) else torch.float32


def allow_tf32(precision: str) -> None:
    """Lets GPUs multiply float32 matrices in TF32 (10 bits of mantissa), unless the user asked for float32."""
    exact = precision == "float32"
    torch.set_float32_matmul_precision("highest" if exact else "high")
    torch.backends.cudnn.allow_tf32 = not exact


def multiplies_bfloat16(device: torch.device) -> bool:
    """Whether the hardware has bfloat16 units."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name) for name in ("amx_bf16", "avx512_bf16"))
