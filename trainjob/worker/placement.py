"""Distributes a model over the workers: a copy on each, or weights, gradients and optimizer state sharded over them."""

import os
import sys
from contextlib import nullcontext
from functools import partial
from inspect import signature
from typing import Any

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, OffloadPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel

from trainjob.api import Model
from trainjob.api.training import Training
from trainjob.data import Preprocessor
from trainjob.errors import UserError
from trainjob.models import Trainable, build
from trainjob.precision import resolve_precision
from trainjob.worker.distributed import gather_on_all, world_size
from trainjob.worker.random_states import seed

_PARAMETERS = signature(DistributedDataParallel).parameters
_IN_EACH_STEP = "forward_sync_buffers" if "forward_sync_buffers" in _PARAMETERS else "broadcast_buffers"  # before 2.13
DDP: dict[str, Any] = {"gradient_as_bucket_view": True, _IN_EACH_STEP: False}
"""Options of DistributedDataParallel. Gradients are views of the buffers that are sent, not copies. The module's own
buffers are not sent in each step: the loop copies rank 0's to all ranks before they are used."""
BYTES_PER_WEIGHT, BYTES_PER_TRAINED = 4, 16
"""Bytes of a weight in float32, and of one that is trained, with its gradient and Adam's two averages."""
SHARE_OF_MEMORY = 0.5
"""The share of a GPU's memory that these may take before `auto` shards; activations need the rest."""

BOTH_BACKENDS = "cpu:gloo,cuda:nccl"
"""The backends of a model that is offloaded to the CPU, where the norm of its gradients is summed."""


def build_for(model: Model, training: Training, preprocessor: Preprocessor, device: torch.device) -> Trainable[Any]:
    """Builds a model on the CPU. If it is to be sharded, its weights are not in memory yet: a new model is on the meta
    device, and the weights of a pretrained one are still in its files."""
    seed(training.seed)
    if is_to_be_sharded(training.sharding, sys.maxsize, _memory(device), world_size()):  # if it is large enough
        with torch.device("meta") if model.pretrained is None else nullcontext():
            module = build(model, preprocessor, as_stored=True)
        if is_to_be_sharded(training.sharding, bytes_of(module), _memory(device), world_size()):
            return module
        seed(training.seed)
    return build(model, preprocessor)


def to_device_or_shard(module: Trainable[Any], training: Training, device: torch.device, *, on_ray: bool) -> nn.Module:
    """Moves the model to the device, or shards it, by `training.sharding`. Returns the module to call instead of it.
    Raises UserError if the network or the precision does not allow it. `on_ray`: whether Ray Train has started the
    workers; local workers do not import it."""
    if training.activation_checkpointing:
        module.recompute_activations()
    needed, memory = bytes_of(module), _memory(device)
    if is_to_be_sharded(training.sharding, needed, memory, world_size()):
        ranks = mesh_shape(needed, memory, _ranks_per_node())
        return shard(module, training, device, ranks)
    module.to(device)
    is_bfloat16 = resolve_precision(training.precision, device) == torch.bfloat16
    if device.type == "cuda" and is_bfloat16 and not training.activation_checkpointing:
        module.round_weights()  # is not known to be faster on CPUs
    if on_ray:
        from ray.train.torch import prepare_model

        return prepare_model(module, device, parallel_strategy_kwargs=DDP)
    if world_size() == 1:
        return module
    gpu: dict[str, Any] = {"device_ids": [device], "output_device": device} if device.type == "cuda" else {}
    return DistributedDataParallel(module, **gpu, **DDP)


def shard(module: Trainable[Any], training: Training, device: torch.device, shape: tuple[int, int]) -> nn.Module:
    """Shards each unit of the module over the ranks of a mesh of this shape: (copies, shards of each copy)."""
    dtype = resolve_precision(training.precision, device)
    if dtype == torch.float16:
        raise UserError("spec.training.precision: a sharded model is trained in bf16 or float32, not in fp16")
    forward = None if dtype == torch.float32 else dtype
    offloads = training.cpu_offload and device.type == "cuda"
    options = partial(
        fully_shard,
        mesh=_mesh(device.type, shape, BOTH_BACKENDS if offloads else None),
        reshard_after_forward=True,  # of the outermost unit, too: its weights are saved and loaded between steps
        mp_policy=MixedPrecisionPolicy(forward, torch.float32, cast_forward_inputs=False),
        offload_policy=CPUOffloadPolicy() if offloads else OffloadPolicy(),
    )
    for unit in module.sharding_units():
        options(unit)
    return module


def is_sharded(module: nn.Module) -> bool:
    return isinstance(module, FSDPModule)


def is_to_be_sharded(sharding: str, needed: int, memory: int | None, workers: int) -> bool:
    """Whether to shard a model that takes `needed` bytes. `memory`: bytes of a worker's GPU; None on the CPU, where
    `auto` does not shard."""
    if sharding != "auto" or workers == 1 or memory is None:
        return sharding == "full" and workers > 1
    return needed > memory * SHARE_OF_MEMORY


def mesh_shape(needed: int, memory: int | None, ranks_per_node: list[int]) -> tuple[int, int]:
    """The number of copies of the model, and of shards of each copy. If there are several nodes with several workers
    each, every node has a copy, so that weights are sent inside nodes and only gradients between them; unless a node's
    GPUs cannot hold one, or the nodes have unequal numbers of workers."""
    ranks, node = len(ranks_per_node), ranks_per_node[0]
    if min(ranks_per_node) != max(ranks_per_node) or node in (1, ranks) or ranks % node:
        return 1, ranks
    if memory is not None and needed > node * memory * SHARE_OF_MEMORY:
        return 1, ranks
    return ranks // node, node


def _mesh(device_type: str, shape: tuple[int, int], backend: str | None) -> DeviceMesh:
    copies, shards = shape
    sizes = {"shards": shards} if copies == 1 else {"copies": copies, "shards": shards}
    return init_device_mesh(
        device_type,
        tuple(sizes.values()),
        mesh_dim_names=tuple(sizes),
        backend_override=dict.fromkeys(sizes, backend) if backend else None,
    )


def _ranks_per_node() -> list[int]:
    """The number of ranks on each rank's node, ordered by rank."""
    return gather_on_all(int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


def bytes_of(module: nn.Module) -> int:
    """Bytes of weights, gradients and optimizer state together."""
    return sum(
        parameter.numel() * (BYTES_PER_TRAINED if parameter.requires_grad else BYTES_PER_WEIGHT)
        for parameter in module.parameters()
    )


def _memory(device: torch.device) -> int | None:
    return torch.cuda.get_device_properties(device).total_memory if device.type == "cuda" else None
