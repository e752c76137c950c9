"""The CPUs of the workers: how many threads each worker has, and whether they compute the precision quickly."""

import os

from trainjob.api import TrainJobSpec
from trainjob.errors import notify
from trainjob.launch.ray_cluster import on_cluster


def worker_threads(spec: TrainJobSpec) -> int:
    """CPU threads of each worker: `workers.cpus`, or an even share of this machine's cores; on a cluster, 1."""
    share = 1 if on_cluster() else len(os.sched_getaffinity(0)) / spec.worker_slots
    return max(1, int(spec.workers.cpus or share))


def note_slow_precision(spec: TrainJobSpec) -> None:
    """Gives a Notice if the workers have no GPUs and their CPUs only emulate the precision. Which CPUs the workers of a
    cluster have is not known here."""
    precision = spec.training.precision
    if spec.workers.gpus:
        return
    if precision == "fp16":
        processor = "CPUs"
    elif precision == "bf16" and not on_cluster() and _cpu_emulates_bfloat16():
        processor = "this machine's CPU"
    else:
        return
    notify(
        f"spec.training.precision is {precision}, which {processor} can only emulate, many times slower than float32: "
        "use auto, or set spec.workers.gpus to 1"
    )


def _cpu_emulates_bfloat16() -> bool:
    import torch

    from trainjob.precision import multiplies_bfloat16

    return not multiplies_bfloat16(torch.device("cpu"))
