"""Gives Ray Train its datasets later, so that its processes start while the driver still prepares the rows."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ray.data import Dataset

POLL_SECONDS = 0.02


class LateDatasets:
    """Passes datasets from the driver to Ray Train's controller, which is on the same node, in a file in `folder`.

    The driver still owns their blocks, so they live as long as the driver.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "datasets"

    def getter(self, name: str) -> "Callable[[], Dataset]":
        """The function that Ray Train calls when it needs the dataset `name`; it waits for `provide`."""
        return partial(_wait_for, self._file, name)

    def provide(self, datasets: "Mapping[str, Dataset]") -> None:
        unfinished = self._file.with_suffix(".unfinished")
        unfinished.write_bytes(_pickle().dumps(dict(datasets)))
        unfinished.replace(self._file)


def _wait_for(file: Path, name: str) -> Any:
    while not file.exists():
        time.sleep(POLL_SECONDS)
    return _pickle().loads(file.read_bytes())[name]


def _pickle() -> Any:
    """Ray's pickle, which includes a dataset's functions."""
    from ray import cloudpickle

    return cloudpickle
