"""Checkpoints: one folder each, complete once `checkpoint.json` exists and every file matches its digest there.

The ranks write and verify checkpoints without `ray.train.report`: a checkpoint counts as soon as it is in storage, the
code is the same with and without a Ray cluster, and the digests reveal a partly written checkpoint.
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
    """The content of a checkpoint; written last."""

    epoch: int
    """Epochs completed."""
    step: int
    """Optimizer steps taken."""
    metrics: dict[str, float]
    """Metrics of the epoch that ends at this step; empty within an epoch."""
    files: dict[str, str]
    """SHA-256 of each file by its path in the checkpoint's folder."""


class Ranks(Protocol):
    """The processes that share the work on a checkpoint: each calls the same methods in the same order."""

    @property
    def rank(self) -> int: ...

    @property
    def count(self) -> int: ...

    def gather(self, value: Any) -> list[Any] | None:
        """Returns every rank's value, ordered by rank, on rank 0, and None on the other ranks."""
        ...

    def broadcast(self, value: Any) -> Any:
        """Returns rank 0's value on every rank."""
        ...

    def agree(self, vote: bool) -> bool:
        """Returns whether every rank votes True."""
        ...


class SingleRank:
    """`Ranks` for a process that works alone."""

    rank, count = 0, 1

    def gather(self, value: Any) -> list[Any] | None:
        return [value]

    def broadcast(self, value: Any) -> Any:
        return value

    def agree(self, vote: bool) -> bool:
        return vote


def checkpoint_name(epoch: int, step: int) -> str:
    """The name of the folder for the checkpoint after `epoch` epochs and `step` steps."""
    return f"epoch-{epoch:04d}-step-{step:08d}"


class CheckpointStore:
    """The checkpoints of one run."""

    def __init__(self, run: Folder, spec: Checkpoints, ranks: Ranks | None = None) -> None:
        """`ranks` save and verify each checkpoint together; by default, this process works alone."""
        self._folder = run / CHECKPOINTS
        self.spec = spec
        self.ranks = ranks or SingleRank()

    def __truediv__(self, name: str) -> Folder:
        """The folder of a checkpoint."""
        return self._folder / name

    def uri(self, name: str) -> str:
        return (self / name).uri

    def save(self, epoch: int, step: int, metrics: dict[str, float], write: Callable[[Path], None]) -> str:
        """Saves the files that `write` puts into a folder, deletes surplus checkpoints and returns its name.

        Each rank writes different files."""
        name = checkpoint_name(epoch, step)
        if self.ranks.rank == 0:
            self._folder.delete(name)
        self.ranks.broadcast(None)  # no rank writes before rank 0 has deleted the remains of an earlier attempt
        with scratch_folder() as local:
            with storage_errors(str(local)):
                write(local)
            self._folder.upload(local, name)
            parts = self.ranks.gather(digests_of(local))
        if parts is not None:
            files = {file: digest for part in parts for file, digest in part.items()}
            manifest = Manifest(epoch=epoch, step=step, metrics=metrics, files=files)
            (self / name).write(MANIFEST, manifest.model_dump_json(indent=1).encode())
            self._delete_surplus(name)
        return name

    def latest(self) -> str | None:
        """The latest intact checkpoint, or None if there is none."""
        names = self.ranks.broadcast(self.names() if self.ranks.rank == 0 else None)
        return next((name for name in reversed(names) if self.is_intact(name)), None)

    def best(self) -> tuple[str, Manifest]:
        """The best intact checkpoint that was validated. Raises TransientError if there is none."""
        for name, manifest in self.ranks.broadcast(self.ranked() if self.ranks.rank == 0 else None):
            if self.is_intact(name):
                return name, manifest
        raise TransientError(f"{self._folder.uri}: no validated checkpoint is intact")

    def is_intact(self, name: str) -> bool:
        """Whether all files of a checkpoint match the digests in its manifest; each rank reads some of the files."""
        return self.ranks.agree(self._files_of_this_rank_match(name))

    def _files_of_this_rank_match(self, name: str) -> bool:
        manifest = self.manifest(name)
        if manifest is None or not manifest.files:
            return False
        files_of_this_rank = sorted(manifest.files)[self.ranks.rank :: self.ranks.count]
        return first_changed(self / name, {file: manifest.files[file] for file in files_of_this_rank}) is None

    def names(self) -> list[str]:
        """The names of all checkpoint folders, intact or not, earliest first."""
        return sorted(filter(_NAME.fullmatch, self._folder.list()), key=_step)

    def manifest(self, name: str) -> Manifest | None:
        return read_manifest(self / name)

    def ranked(self) -> list[tuple[str, Manifest]]:
        """Complete, validated checkpoints with their names, best first; ties in order of step."""
        complete = ((name, self.manifest(name)) for name in self.names())
        ranked = [(name, found) for name, found in complete if found is not None and self.spec.metric in found.metrics]
        return sorted(ranked, key=lambda item: self.value(item[1]), reverse=not self.spec.lower_is_better)

    def value(self, manifest: Manifest) -> float:
        """The value of the metric that ranks checkpoints."""
        return manifest.metrics[self.spec.metric]

    def _delete_surplus(self, latest: str) -> None:
        """Deletes the checkpoints before `latest` that are not among the best `keep`.

        Later ones stay: another attempt wrote them, or they are incomplete and will be replaced."""
        kept = {name for name, _ in self.ranked()[: self.spec.keep]}
        for name in self.names():
            if _step(name) < _step(latest) and name not in kept:
                (self / name).delete(MANIFEST)
                self._folder.delete(name)


def read_manifest(checkpoint: Folder) -> Manifest | None:
    """Returns None if the checkpoint in this folder is incomplete."""
    try:
        return Manifest.model_validate_json(checkpoint.read(MANIFEST)) if checkpoint.exists(MANIFEST) else None
    except ValueError:
        return None


def files_of(checkpoint: Folder) -> dict[str, str]:
    """The digests of a checkpoint's files. Its folder may also hold files of an interrupted attempt.

    Raises StorageError if the checkpoint is incomplete.
    """
    manifest = read_manifest(checkpoint)
    if manifest is None:
        raise StorageError(f"{checkpoint.uri}: the checkpoint is not complete, as its {MANIFEST} is missing or damaged")
    return manifest.files


def _step(name: str) -> int:
    return int(name.rpartition("-")[2])
