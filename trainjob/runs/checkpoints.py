"""Checkpoints: a folder each, complete once its `checkpoint.json` is there and every file matches it.

Ranks write and verify them themselves rather than through `ray.train.report`, so that a checkpoint counts as soon as it
lies in storage, is written alike with and without a Ray cluster, and a torn one is told by its digests.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from trainjob.api import Checkpoints
from trainjob.errors import StorageError, TransientError
from trainjob.runs.digests import digests_of, first_changed
from trainjob.runs.files import CHECKPOINTS
from trainjob.schema.base import StrictModel
from trainjob.scratch import scratch_folder
from trainjob.storage import Folder, storage_errors

MANIFEST = "checkpoint.json"
_NAME = re.compile(r"epoch-\d+-step-\d+")


class Manifest(StrictModel):
    """What a checkpoint holds; written last."""

    epoch: int
    """Epochs completed."""
    step: int
    """Optimizer steps taken."""
    metrics: dict[str, float]
    """Metrics of the epoch that it ends; empty inside an epoch."""
    files: dict[str, str]
    """SHA-256 of each file by its path in the checkpoint's folder."""


class Ranks(Protocol):
    """The processes that share the work on a checkpoint: each calls the same methods in the same order."""

    @property
    def rank(self) -> int: ...

    @property
    def count(self) -> int: ...

    def gather(self, value: Any) -> list[Any] | None:
        """Every rank's value in order of rank, on rank 0; None on the others."""
        ...

    def from_first(self, value: Any) -> Any:
        """Rank 0's value, on every rank."""
        ...

    def agree(self, vote: bool) -> bool:
        """Whether every rank votes for it."""
        ...


class Alone:
    """The only process."""

    rank, count = 0, 1

    def gather(self, value: Any) -> list[Any] | None:
        return [value]

    def from_first(self, value: Any) -> Any:
        return value

    def agree(self, vote: bool) -> bool:
        return vote


def checkpoint_name(epoch: int, step: int) -> str:
    """The folder of the checkpoint after so many epochs and steps."""
    return f"epoch-{epoch:04d}-step-{step:08d}"


class CheckpointStore:
    """The checkpoints of one run."""

    def __init__(self, run: Folder, spec: Checkpoints, ranks: Ranks | None = None) -> None:
        """`ranks` are those that save and verify each checkpoint together; by default this process alone."""
        self._folder = run / CHECKPOINTS
        self._spec = spec
        self.ranks = ranks or Alone()

    def __truediv__(self, name: str) -> Folder:
        """The folder of a checkpoint."""
        return self._folder / name

    def uri(self, name: str) -> str:
        return (self / name).uri

    def save(self, epoch: int, step: int, metrics: dict[str, float], write: Callable[[Path], None]) -> str:
        """Stores what `write` puts into a folder, on every rank other files, and returns the checkpoint's name; then
        drops those not kept."""
        name = checkpoint_name(epoch, step)
        if self.ranks.rank == 0:
            self._folder.delete(name)
        self.ranks.from_first(None)  # nobody writes before what was torn is gone
        with scratch_folder() as local:
            with storage_errors(str(local)):
                write(local)
            self._folder.upload(local, name)
            parts = self.ranks.gather(digests_of(local))
        if parts is not None:
            files = {file: digest for part in parts for file, digest in part.items()}
            manifest = Manifest(epoch=epoch, step=step, metrics=metrics, files=files)
            (self / name).write(MANIFEST, manifest.model_dump_json(indent=1).encode())
            self._drop_others(name)
        return name

    def latest(self) -> str | None:
        """The latest sound checkpoint, or None where there is none."""
        names = self.ranks.from_first(self.names() if self.ranks.rank == 0 else None)
        return next((name for name in reversed(names) if self.is_sound(name)), None)

    def best(self) -> tuple[str, Manifest]:
        """The best of the sound checkpoints that end an epoch. Raises TransientError without one."""
        for name, manifest in self.ranks.from_first(self.ranked() if self.ranks.rank == 0 else None):
            if self.is_sound(name):
                return name, manifest
        raise TransientError(f"{self._folder.uri}: no checkpoint that was validated is whole")

    def is_sound(self, name: str) -> bool:
        """Whether a checkpoint's files are those of its manifest; each rank reads its share of them."""
        return self.ranks.agree(self._own_share_is_sound(name))

    def _own_share_is_sound(self, name: str) -> bool:
        manifest = self.manifest(name)
        if manifest is None or not manifest.files:
            return False
        own = sorted(manifest.files)[self.ranks.rank :: self.ranks.count]
        return first_changed(self / name, {file: manifest.files[file] for file in own}) is None

    def names(self) -> list[str]:
        """Checkpoint folders from the earliest to the latest, sound or not."""
        return sorted(filter(_NAME.fullmatch, self._folder.list()), key=_step)

    def manifest(self, name: str) -> Manifest | None:
        return read_manifest(self / name)

    def ranked(self) -> list[tuple[str, Manifest]]:
        """Complete checkpoints that were validated, by name, best first; of equals the earlier."""
        complete = ((name, self.manifest(name)) for name in self.names())
        ranked = [(name, found) for name, found in complete if found is not None and self._spec.metric in found.metrics]
        return sorted(ranked, key=lambda item: self.value(item[1]), reverse=not self._spec.lower_is_better)

    def value(self, manifest: Manifest) -> float:
        """The metric that ranks checkpoints."""
        return manifest.metrics[self._spec.metric]

    def _drop_others(self, latest: str) -> None:
        """Of those before `latest`: what comes after it is another attempt's, or torn and soon replaced."""
        kept = {name for name, _ in self.ranked()[: self._spec.keep]}
        for name in self.names():
            if _step(name) < _step(latest) and name not in kept:
                (self / name).delete(MANIFEST)
                self._folder.delete(name)


def read_manifest(checkpoint: Folder) -> Manifest | None:
    """None where the checkpoint in this folder is not complete."""
    try:
        return Manifest.model_validate_json(checkpoint.read(MANIFEST)) if checkpoint.exists(MANIFEST) else None
    except ValueError:
        return None


def files_of(checkpoint: Folder) -> dict[str, str]:
    """The digests of a checkpoint's files. Others may lie beside them, which an attempt that was cut off has left.

    Raises StorageError where the checkpoint is not complete.
    """
    manifest = read_manifest(checkpoint)
    if manifest is None:
        raise StorageError(f"{checkpoint.uri}: the checkpoint is not complete, as its {MANIFEST} is missing or damaged")
    return manifest.files


def _step(name: str) -> int:
    return int(name.rpartition("-")[2])
