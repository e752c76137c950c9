"""The memory of a worker's GPU."""

import re

from trainjob.api.cluster import QUANTITY
from trainjob.api.numbers import amount_of
from trainjob.api.trainjob import Workers
from trainjob.errors import UserError


def capacity_of(workers: Workers, given: str | None, in_cluster: int | None = None) -> int | None:
    """Bytes of a GPU's memory: as given, or in the cluster, or of this machine's first GPU; None if there is none, or
    none is used."""
    if given is not None:
        if not re.fullmatch(QUANTITY, given):
            raise UserError(f"--gpu-memory: {given!r} is not a number of bytes, such as 80Gi or 24G")
        if not workers.gpus:
            raise UserError("--gpu-memory: the workers use no GPU (spec.workers.gpus is 0)")
        return round(amount_of(given))
    if not workers.gpus:
        return None
    if in_cluster is not None:
        return in_cluster
    import torch

    return torch.cuda.get_device_properties(0).total_memory if torch.cuda.is_available() else None
