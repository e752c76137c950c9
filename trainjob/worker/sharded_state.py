"""The weights and the optimizer's state in checkpoints: what each rank writes, and what it reads again.

Of a tensor that is sharded a rank has some rows; of any other, all ranks have all rows and share out the writing.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, Replicate
from torch.optim import Optimizer

from trainjob.models import Trainable
from trainjob.runs.checkpoint_tensors import WEIGHT, CheckpointTensors, TensorRows

OPTIMIZER = "optimizer."
_DTYPES = {
    torch.float64: "F64",
    torch.int64: "I64",
    torch.float32: "F32",
    torch.int32: "I32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
"""As safetensors calls them."""


@dataclass(frozen=True)
class Share:
    """Some rows of a tensor."""

    local: Tensor
    """The rows; of a tensor without dimensions, itself."""
    start: int
    """The first of them."""

    @property
    def rows(self) -> int:
        return self.local.shape[0] if self.local.dim() else 1


def own_rows(tensor: Tensor) -> Share:
    """Those that are on this rank, in the tensor's own memory."""
    if not isinstance(tensor, DTensor):
        return Share(tensor.detach(), 0)
    (chunk,) = tensor.__create_chunk_list__()
    with torch.no_grad():
        return Share(tensor.to_local(), chunk.offsets[0])


def rows_to_write(tensor: Tensor, rank: int, ranks: int, *, alike: bool) -> Share | None:
    """Those that this rank writes, so that all ranks together write each row once. A tensor that is not `alike` on all
    ranks, as the running statistics of batch normalization are not, is rank 0's."""
    if isinstance(tensor, DTensor):
        share = own_rows(tensor)
        places = zip(tensor.device_mesh.get_coordinate() or [], tensor.placements, strict=True)
        is_copy = any(place > 0 for place, placement in places if isinstance(placement, Replicate))
        return share if share.rows and not is_copy else None
    if tensor.dim() == 0 or not alike:
        return own_rows(tensor) if rank == 0 else None
    size = -(-len(tensor) // ranks)
    rows = tensor.detach()[rank * size : (rank + 1) * size]
    return Share(rows, rank * size) if len(rows) or rank == 0 else None


@dataclass(frozen=True)
class Copied:
    """Rows of a tensor as they were."""

    name: str
    shape: tuple[int, ...]
    """Of the whole tensor."""
    share: Share

    def rows(self) -> TensorRows:
        """In host memory."""
        local, start = self.share.local, self.share.start
        return TensorRows(self.name, _DTYPES[local.dtype], self.shape, start, self.share.rows, _host_bytes(local))


def staged(module: Trainable[Any], optimizer: Optimizer, rank: int, ranks: int) -> deque[Copied]:
    """A copy of what this rank writes: on the GPU, in a moment, if that has twice the room, and else in host memory."""
    found = [
        (name, tuple(tensor.shape), share)
        for name, tensor, alike in _tensors(module, optimizer)
        if (share := rows_to_write(tensor, rank, ranks, alike=alike)) is not None
    ]
    on_gpu = [share.local for _, _, share in found if share.local.is_cuda]
    stays = bool(on_gpu) and 2 * sum(each.nbytes for each in on_gpu) <= torch.cuda.mem_get_info(on_gpu[0].device)[0]
    copies = deque(Copied(name, shape, Share(_copy(share.local, stays), share.start)) for name, shape, share in found)
    if on_gpu:
        torch.cuda.synchronize(on_gpu[0].device)
    return copies


def drained(copies: deque[Copied]) -> Iterator[TensorRows]:
    """All of them in host memory, one after another; those that are done with take no memory any more."""
    while copies:
        yield copies.popleft().rows()


def _copy(tensor: Tensor, stays: bool) -> Tensor:
    if stays and tensor.is_cuda:
        return tensor.clone()
    copy = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.is_cuda)
    return copy.copy_(tensor, non_blocking=True)


def _host_bytes(tensor: Tensor) -> memoryview:
    """From a GPU beside what that computes, not in its turn."""
    with torch.cuda.stream(torch.cuda.Stream(tensor.device) if tensor.is_cuda else None):
        return _bytes_of(tensor.cpu())


def _bytes_of(tensor: Tensor) -> memoryview:
    numbers: Any = tensor.reshape(-1).view(torch.uint8).numpy()
    return memoryview(numbers)


def _tensors(module: Trainable[Any], optimizer: Optimizer) -> Iterator[tuple[str, Tensor, bool]]:
    """Name, tensor, and whether it is alike on all ranks."""
    for name, tensor in module.weights.items():
        yield WEIGHT + name, tensor, isinstance(tensor, nn.Parameter)
    for name, parameter in _parameters(module).items():
        for key, value in optimizer.state.get(parameter, {}).items():
            if isinstance(value, Tensor):
                yield f"{OPTIMIZER}{key}.{name}", value, True


def _parameters(module: Trainable[Any]) -> dict[str, nn.Parameter]:
    return {name: tensor for name, tensor in module.weights.items() if isinstance(tensor, nn.Parameter)}


@torch.no_grad()
def load_weights(module: Trainable[Any], parts: CheckpointTensors) -> None:
    """Loads a checkpoint's weights, on each rank its own rows. Raises RuntimeError for those of another model."""
    _fill({WEIGHT + name: tensor for name, tensor in module.weights.items()}, parts)


@torch.no_grad()
def load_optimizer(optimizer: Optimizer, module: Trainable[Any], parts: CheckpointTensors) -> None:
    """Loads a checkpoint's state of the optimizer of the module's parameters."""
    parameters = _parameters(module)
    tensors: dict[str, Tensor] = {}
    for full in parts.names(OPTIMIZER):
        key, _, name = full.removeprefix(OPTIMIZER).partition(".")
        parameter, shape = parameters[name], parts.shape(full)
        assert shape is not None
        like = shape == tuple(parameter.shape)
        tensors[full] = torch.empty_like(parameter) if like else torch.empty(shape, device=parameter.device)
        optimizer.state[parameter][key] = tensors[full]
    _fill(tensors, parts)


def _fill(tensors: Mapping[str, Tensor], parts: CheckpointTensors) -> None:
    lacking = [name for name, tensor in tensors.items() if parts.shape(name) != tuple(tensor.shape)]
    if lacking:
        raise RuntimeError(f"the checkpoint is of another model: {lacking}")
    shares = {name: own_rows(tensor) for name, tensor in tensors.items()}
    for name, start, data in parts.read(
        (name, share.start, share.start + share.rows) for name, share in shares.items()
    ):
        share = shares[name]
        rows = torch.frombuffer(data, dtype=share.local.dtype)
        if share.local.dim():
            rows = rows.view(-1, *share.local.shape[1:])
            share.local[start - share.start :][: len(rows)].copy_(rows)
        else:
            share.local.copy_(rows[0])
