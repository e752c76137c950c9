"""Chooses the device of a worker, and checks that the GPUs that a TrainJob asks for exist and can be used."""

import re

import torch

from trainjob.api import TrainJobSpec
from trainjob.api.trainjob import Workers
from trainjob.errors import OutOfMemory, UserError


def check_gpus(workers: Workers, found: int) -> None:
    """Raises UserError if this machine has `found` GPUs and there are more workers, each of which needs one."""
    if workers.count <= found:
        return
    if found == 0:
        raise UserError(
            f"spec.workers.gpus is 1 and PyTorch cannot use any GPU of this machine ({_why_no_gpu()}). "
            "Set it to 0 to train on the CPU"
        )
    raise UserError(
        f"spec.workers.count is {workers.count} with a GPU for each worker, and PyTorch can use {found} on this "
        f"machine: set the count to {found} or less"
    )


def device_of(workers: Workers) -> torch.device:
    """The device of this worker: the CPU if `workers.gpus` is 0, or else the process's current GPU.

    Raises UserError if PyTorch can use no GPU.
    """
    if workers.gpus == 0:
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise UserError(f"spec.workers.gpus is 1 and a worker has no GPU that PyTorch can use ({_why_no_gpu()})")
    device = torch.device("cuda", torch.cuda.current_device())
    check_kernels(torch.cuda.get_device_name(device), torch.cuda.get_device_capability(device))
    return device


def check_kernels(name: str, capability: tuple[int, int], built_for: list[str] | None = None) -> None:
    """Raises UserError if PyTorch was not built for a GPU of this name and compute capability.

    A GPU runs binaries (`sm_80`) of its own major version up to its minor one, and any older PTX (`compute_80`):
    https://docs.nvidia.com/cuda/cuda-c-programming-guide/#application-compatibility
    """
    built_for = torch.cuda.get_arch_list() if built_for is None else built_for
    if torch.version.hip is not None or any(_runs(arch, capability) for arch in built_for):
        return
    major, minor = capability
    raise UserError(
        f"this PyTorch ({torch.__version__}) has no code for the GPU {name} (sm_{major}{minor}), only for "
        f"{', '.join(built_for)}: install a PyTorch that is built for it, or choose other GPUs with "
        "spec.workers.nodePool"
    )


_OUT_OF_MEMORY = re.compile(
    r"(CUDA|HIP) error: out of memory|ALLOC_FAILED|(?i:cuda|hip) failure 2\b|hipErrorOutOfMemory"
)
"""Messages of CUDA, HIP and their libraries for memory that PyTorch's own allocator does not manage."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a GPU ran out of memory."""
    if isinstance(error, torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and _OUT_OF_MEMORY.search(str(error)) is not None


def out_of_memory(spec: TrainJobSpec, error: BaseException) -> UserError:
    """The error for the user: which rows take the memory of the GPU, and which fields to lower."""
    count, rows = spec.workers.count, spec.training.batch_size
    length, lower = "", "spec.training.batchSize (and raise gradientAccumulation by as much)"
    if spec.model.max_length is not None:
        length = f" of up to {spec.model.max_length} tokens"
        lower += f" or spec.model.{spec.model.in_yaml(spec.model.chosen)}.maxLength"
    return OutOfMemory(
        f"a worker's GPU has too little memory for its {rows // count} rows{length} of each batch of {rows}: lower "
        f"{lower}, or train with more workers or larger GPUs ({' '.join(str(error).split())[:300]})"
    )


def _runs(arch: str, capability: tuple[int, int]) -> bool:
    kind, _, number = arch.partition("_")
    digits = "".join(filter(str.isdigit, number))  # sm_90a
    version = int(digits[:-1]), int(digits[-1])
    if kind == "compute":
        return version <= capability
    return version[0] == capability[0] and version <= capability


def _why_no_gpu() -> str:
    """Why PyTorch finds no GPU, in its own words: for example no driver, an old driver, or a build without CUDA."""
    try:
        torch.cuda.init()
    except (AssertionError, RuntimeError) as error:
        return " ".join(str(error).partition("Please")[0].split()).rstrip(". ")
    return "CUDA_VISIBLE_DEVICES hides them"
