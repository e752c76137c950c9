"""Counts the bytes of live tensors."""

import weakref
from collections.abc import Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LiveBytes(TorchDispatchMode):
    """Counts the storages of the tensors that operations create within the block, until they are freed; of real and of
    fake tensors. Does not count memory that an operation allocates and frees itself."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._alive: dict[int, tuple[int, weakref.ref[Any]]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **kwargs or {})
        self.add(each for each in tree_leaves(made) if isinstance(each, Tensor))
        return made

    def add(self, tensors: Iterable[Tensor]) -> None:
        """Also counts tensors that existed before the block."""
        for tensor in tensors:
            storage = tensor.untyped_storage()
            key = storage._cdata  # noqa: SLF001  # views have storages of the same
            if key not in self._alive:
                self._alive[key] = storage.nbytes(), weakref.ref(storage, partial(self._free, key))
                self.now += storage.nbytes()
        self.peak = max(self.peak, self.now)

    def _free(self, key: int, _: Any) -> None:
        self.now -= self._alive.pop(key)[0]


def bytes_of(tensors: Iterable[Tensor | None]) -> int:
    """Bytes of the tensors' storages, of shared ones once."""
    storages = (tensor.untyped_storage() for tensor in tensors if tensor is not None)
    return sum({storage._cdata: storage.nbytes() for storage in storages}.values())  # noqa: SLF001


def state_of(optimizer: torch.optim.Optimizer) -> Iterable[Tensor]:
    """The optimizer's tensors."""
    return (value for state in optimizer.state.values() for value in state.values() if isinstance(value, Tensor))
