"""Datasets that Ray Train is promised, so that its processes start while the driver still prepares them."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

if TYPE_CHECKING:
    from ray.data import Dataset

POLL_SECONDS = 0.02


class Handover:
    """Passes datasets to Ray Train's controller through the cluster's key-value store.

    The driver keeps owning their blocks, so they live as long as it does.
    """

    def __init__(self) -> None:
        self._key = f"trainjob-datasets-{uuid4()}".encode()

    def promise(self, name: str) -> "Callable[[], Dataset]":
        """Gives the dataset `name` once `fulfil` was called; Ray Train calls it when it needs the dataset."""
        return partial(_wait_for, self._key, name)

    def fulfil(self, datasets: "Mapping[str, Dataset]") -> None:
        from ray.experimental.internal_kv import _internal_kv_put  # pyright: ignore[reportPrivateUsage]

        _internal_kv_put(self._key, _pickle().dumps(dict(datasets)))


def _wait_for(key: bytes, name: str) -> Any:
    from ray.experimental.internal_kv import _internal_kv_get  # pyright: ignore[reportPrivateUsage]

    datasets: bytes | None = None
    while datasets is None:
        time.sleep(POLL_SECONDS)
        datasets = _internal_kv_get(key)
    return _pickle().loads(datasets)[name]


def _pickle() -> Any:
    """Ray's, which takes a dataset's functions along."""
    from ray import cloudpickle

    return cloudpickle
