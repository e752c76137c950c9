"""How a model lies on the workers: a copy on each, or its weights, gradients and optimizer state sharded over them."""

import sys
from contextlib import nullcontext
from functools import partial
from typing import Any

import ray.train
import torch
from ray.train.torch import prepare_model
from torch import distributed, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, OffloadPolicy, fully_shard

from trainjob.api import Model
from trainjob.api.training import Training
from trainjob.data import Preprocessor
from trainjob.errors import UserError
from trainjob.models import Trainable, build
from trainjob.precision import resolve_precision
from trainjob.worker.distributed import world_size
from trainjob.worker.random_states import seed

DDP = {"gradient_as_bucket_view": True, "broadcast_buffers": False}
"""Keeps gradients once, in the buffers that are sent, instead of copies of them. The model's own are not sent in
each step: nobody looks at those of other ranks before the loop gives them rank 0's."""
BYTES_PER_WEIGHT, BYTES_PER_TRAINED = 4, 16
"""Of a weight in float32; of one that is trained, with its gradient and the two averages that Adam keeps."""
SHARE_OF_MEMORY = 0.5
"""How much of a GPU these may take before `auto` shards: activations want the rest."""

BOTH_BACKENDS = "cpu:gloo,cuda:nccl"
"""Of a model that is offloaded to the CPU, whose gradients' norm is added up there."""


def build_for(model: Model, training: Training, preprocessor: Preprocessor, device: torch.device) -> Trainable[Any]:
    """A new model on the CPU. One that is to be sharded has no weights in memory yet: from scratch it lies on the meta
    device, and a pretrained one's are in its files."""
    seed(training.seed)
    if is_to_be_sharded(training.sharding, sys.maxsize, _memory(device), world_size()):  # if it is large enough
        with torch.device("meta") if model.pretrained is None else nullcontext():
            module = build(model, preprocessor, as_stored=True)
        if is_to_be_sharded(training.sharding, bytes_of(module), _memory(device), world_size()):
            return module
        seed(training.seed)
    return build(model, preprocessor)


def place(module: Trainable[Any], training: Training, device: torch.device, *, in_ray_train: bool) -> nn.Module:
    """Puts the model on the device as `training.sharding` says, and returns what is to be called instead of it. Raises
    UserError where the network or the precision do not allow what is asked for."""
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
    return prepare_model(module, device, parallel_strategy_kwargs=DDP) if in_ray_train else module


def shard(module: Trainable[Any], training: Training, device: torch.device, shape: tuple[int, int]) -> nn.Module:
    """Shards the module, part by part, over the ranks in the rows of a mesh of this shape: (copies, shards of each)."""
    dtype = resolve_precision(training.precision, device)
    if dtype == torch.float16:
        raise UserError("spec.training.precision: a sharded model is trained in bf16 or float32, not in fp16")
    forward = None if dtype == torch.float32 else dtype
    offloads = training.cpu_offload and device.type == "cuda"
    options = partial(
        fully_shard,
        mesh=_mesh(device.type, shape, BOTH_BACKENDS if offloads else None),
        reshard_after_forward=True,  # of the outermost part, too: its weights are saved and loaded between steps
        mp_policy=MixedPrecisionPolicy(forward, torch.float32, cast_forward_inputs=False),
        offload_policy=CPUOffloadPolicy() if offloads else OffloadPolicy(),
    )
    for part in module.parts():
        options(part)
    return module


def is_sharded(module: nn.Module) -> bool:
    return isinstance(module, FSDPModule)


def is_to_be_sharded(sharding: str, needed: int, memory: int | None, workers: int) -> bool:
    """Whether a model is that takes the bytes `needed`; `memory` is that of a worker's GPU in bytes, None on the CPU,
    where `auto` shards nothing."""
    if sharding != "auto" or workers == 1 or memory is None:
        return sharding == "full" and workers > 1
    return needed > memory * SHARE_OF_MEMORY


def mesh_shape(needed: int, memory: int | None, ranks_per_node: list[int]) -> tuple[int, int]:
    """Copies of the model, and shards of each copy. Where there are several nodes of several workers each, every node
    has a copy, so that weights travel inside nodes and only gradients between them; but not where a node's GPUs cannot
    hold one, or the nodes have unequal numbers of workers."""
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
    """For each rank, how many there are on its node."""
    counts: list[Any] = [None] * world_size()
    distributed.all_gather_object(counts, ray.train.get_context().get_local_world_size())
    return counts


def bytes_of(module: nn.Module) -> int:
    """Of weights, gradients and optimizer state together."""
    return sum(
        parameter.numel() * (BYTES_PER_TRAINED if parameter.requires_grad else BYTES_PER_WEIGHT)
        for parameter in module.parameters()
    )


def _memory(device: torch.device) -> int | None:
    return torch.cuda.get_device_properties(device).total_memory if device.type == "cuda" else None
