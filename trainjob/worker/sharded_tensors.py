"""The tensors of a checkpoint, weights and optimizer state: the rows that each rank writes, and those that it reads.

Of a sharded tensor, a rank holds some rows. Of any other, all ranks hold all rows, and each writes some of them.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, Replicate
from torch.optim import Optimizer

from trainjob.models import Trainable
from trainjob.runs.checkpoints import WEIGHT, CheckpointTensors, TensorRows, TensorType

OPTIMIZER = "optimizer."
"""Prefix of the names of the optimizer's tensors."""
_DTYPES = {
    torch.float64: "F64",
    torch.int64: "I64",
    torch.float32: "F32",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
"""Names in safetensors' format."""
_DTYPES_BY_NAME = {name: dtype for dtype, name in _DTYPES.items()}


@dataclass(frozen=True)
class LocalRows:
    """Consecutive rows of a tensor on this rank."""

    name: str
    shape: tuple[int, ...]
    """The shape of the whole tensor."""
    local: Tensor
    """The rows; a scalar itself."""
    start: int
    """The index of the first row."""

    @property
    def count(self) -> int:
        return self.local.shape[0] if self.local.dim() else 1


def local_rows(name: str, tensor: Tensor) -> LocalRows:
    """The rows that are on this rank, in the tensor's own memory."""
    if not isinstance(tensor, DTensor):
        return LocalRows(name, tuple(tensor.shape), tensor.detach(), 0)
    (chunk,) = tensor.__create_chunk_list__()
    with torch.no_grad():
        return LocalRows(name, tuple(tensor.shape), tensor.to_local(), chunk.offsets[0])


def rows_to_write(name: str, tensor: Tensor, rank: int, ranks: int, *, replicated: bool) -> LocalRows | None:
    """The rows that this rank writes, so that the ranks together write each row once. Rank 0 writes a tensor that is
    not `replicated`, which has other values on other ranks, such as the running statistics of batch normalization."""
    rows = local_rows(name, tensor)
    if isinstance(tensor, DTensor):
        coordinates = zip(tensor.device_mesh.get_coordinate() or [], tensor.placements, strict=True)
        is_copy = any(index > 0 for index, placement in coordinates if isinstance(placement, Replicate))
        return rows if rows.count and not is_copy else None
    if tensor.dim() == 0 or not replicated:
        return rows if rank == 0 else None
    size = ceil(len(tensor) / ranks)
    part = rows.local[rank * size : (rank + 1) * size]
    return replace(rows, local=part, start=rank * size) if len(part) or rank == 0 else None


def copy_rows(module: Trainable[Any], optimizer: Optimizer, rank: int, ranks: int) -> deque[LocalRows]:
    """Copies the rows that this rank writes: on the GPU, which is fast, if it has room for two copies, or else to host
    memory."""
    found = [
        rows
        for name, tensor, replicated in _tensors(module, optimizer)
        if (rows := rows_to_write(name, tensor, rank, ranks, replicated=replicated)) is not None
    ]
    on_gpu = [rows.local for rows in found if rows.local.is_cuda]
    stays = bool(on_gpu) and 2 * sum(each.nbytes for each in on_gpu) <= torch.cuda.mem_get_info(on_gpu[0].device)[0]
    copies = deque(replace(rows, local=_copy(rows.local, stays)) for rows in found)
    if on_gpu:
        torch.cuda.synchronize(on_gpu[0].device)
    return copies


def in_host_memory(copies: deque[LocalRows]) -> Iterator[TensorRows]:
    """Yields the copies in host memory, one after another. A copy's own memory is freed once it has been yielded."""
    while copies:
        yield _tensor_rows(copies.popleft())


def _tensor_rows(rows: LocalRows) -> TensorRows:
    return TensorRows(rows.name, _DTYPES[rows.local.dtype], rows.shape, rows.start, rows.count, _host_bytes(rows.local))


def _copy(tensor: Tensor, stays: bool) -> Tensor:
    if stays and tensor.is_cuda:
        return tensor.clone()
    copy = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.is_cuda)
    return copy.copy_(tensor, non_blocking=True)


def _host_bytes(tensor: Tensor) -> memoryview:
    """A GPU's tensor is copied on a stream of its own, beside the computation."""
    with torch.cuda.stream(torch.cuda.Stream(tensor.device) if tensor.is_cuda else None):
        numbers: Any = tensor.cpu().reshape(-1).view(torch.uint8).numpy()
    return memoryview(numbers)


def _tensors(module: Trainable[Any], optimizer: Optimizer) -> Iterator[tuple[str, Tensor, bool]]:
    """Yields each tensor's name, the tensor, and whether it is the same on all ranks."""
    for name, tensor in module.weights.items():
        yield WEIGHT + name, tensor, isinstance(tensor, nn.Parameter)
    for name, parameter in _parameters(module).items():
        for key, value in optimizer.state.get(parameter, {}).items():
            if isinstance(value, Tensor):
                yield f"{OPTIMIZER}{key}.{name}", value, True


def _parameters(module: Trainable[Any]) -> dict[str, nn.Parameter]:
    return {name: tensor for name, tensor in module.weights.items() if isinstance(tensor, nn.Parameter)}


@torch.no_grad()
def load_weights(module: Trainable[Any], saved: CheckpointTensors) -> None:
    """Loads a checkpoint's weights; each rank loads its own rows. Raises RuntimeError for those of another model."""
    _fill({WEIGHT + name: tensor for name, tensor in module.weights.items()}, saved)


@torch.no_grad()
def load_optimizer(optimizer: Optimizer, module: Trainable[Any], saved: CheckpointTensors) -> None:
    """Loads a checkpoint's optimizer state of the module's parameters."""
    parameters = _parameters(module)
    tensors: dict[str, Tensor] = {}
    for full in saved.names(OPTIMIZER):
        key, _, name = full.removeprefix(OPTIMIZER).partition(".")
        parameter, found = parameters[name], saved.type(full)
        assert found is not None
        dtype = _DTYPES_BY_NAME[found.dtype]
        if found.shape == tuple(parameter.shape):  # sharded like the parameter
            tensors[full] = torch.empty_like(parameter, dtype=dtype)
        else:
            tensors[full] = torch.empty(found.shape, dtype=dtype, device=parameter.device)
        optimizer.state[parameter][key] = tensors[full]
    _fill(tensors, saved)


def _fill(tensors: Mapping[str, Tensor], saved: CheckpointTensors) -> None:
    others = [name for name, tensor in tensors.items() if saved.type(name) != _type(tensor)]
    if others:
        raise RuntimeError(f"the checkpoint belongs to another model: {others}")
    local = {name: local_rows(name, tensor) for name, tensor in tensors.items()}
    for name, start, data in saved.read((name, rows.start, rows.start + rows.count) for name, rows in local.items()):
        rows = local[name]
        values = torch.frombuffer(data, dtype=rows.local.dtype)
        if rows.local.dim():
            values = values.view(-1, *rows.local.shape[1:])
            rows.local[start - rows.start :][: len(values)].copy_(values)
        else:
            rows.local.copy_(values[0])


def _type(tensor: Tensor) -> TensorType:
    return TensorType(_DTYPES[tensor.dtype], tuple(tensor.shape))
