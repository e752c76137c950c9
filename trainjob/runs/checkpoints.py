"""Checkpoints: a folder each, complete once its `checkpoint.json` is there and every file matches it.

Rank 0 writes and reads them itself rather than through `ray.train.report`, so that a checkpoint counts as soon as it
lies in storage, is written alike with and without a Ray cluster, and a torn one is told by its digests.
"""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

from trainjob.api import Checkpoints
from trainjob.api.base import StrictModel
from trainjob.errors import PassingError
from trainjob.runs.files import CHECKPOINTS
from trainjob.scratch import scratch_folder
from trainjob.storage import Folder

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
    """SHA-256 of each file by its name."""


def checkpoint_name(epoch: int, step: int) -> str:
    """The folder of the checkpoint after so many epochs and steps."""
    return f"epoch-{epoch:04d}-step-{step:08d}"


class CheckpointStore:
    """The checkpoints of one run."""

    def __init__(self, run: Folder, spec: Checkpoints) -> None:
        self._folder = run / CHECKPOINTS
        self._spec = spec

    def uri(self, name: str) -> str:
        return (self._folder / name).uri

    def save(self, epoch: int, step: int, metrics: dict[str, float], write: Callable[[Path], None]) -> str:
        """Stores what `write` puts into a folder and returns the checkpoint's name; then drops those not kept."""
        name = checkpoint_name(epoch, step)
        self._folder.delete(name)
        with scratch_folder() as local:
            write(local)
            self._folder.upload(local, name)
            manifest = Manifest(epoch=epoch, step=step, metrics=metrics, files=_digests(local))
        (self._folder / name).write(MANIFEST, manifest.model_dump_json(indent=1).encode())
        self._drop_others(name)
        return name

    def restore(self, local: Path) -> str | None:
        """Downloads the latest sound checkpoint to `local` and returns its name, or None where there is none."""
        for name in reversed(self.names()):
            if self.download(name, local / name):
                return name
        return None

    def best(self, local: Path) -> tuple[str, Manifest]:
        """Downloads the best of the sound checkpoints that end an epoch to `local`. Raises PassingError without one."""
        for name, manifest in self.ranked():
            if self.download(name, local / name):
                return name, manifest
        raise PassingError(f"{self._folder.uri}: no checkpoint that ends an epoch is whole")

    def fetch(self, name: str, target: Path) -> None:
        """Copies a checkpoint that was sound when another rank has read it. Raises PassingError where it is no more."""
        if not self.download(name, target):
            raise PassingError(f"{self.uri(name)}: the checkpoint has changed while it was read")

    def download(self, name: str, target: Path) -> bool:
        """Copies a checkpoint's files without its manifest; False where they are not what the manifest says."""
        manifest = self.manifest(name)
        if manifest is None or not manifest.files or not manifest.files.keys() <= set(self._folder.list(name)):
            return False
        for file in manifest.files:
            (self._folder / name).download(file, target / file)
        return _digests(target) == manifest.files

    def names(self) -> list[str]:
        """Checkpoint folders from the earliest to the latest, sound or not."""
        return sorted(filter(_NAME.fullmatch, self._folder.list()), key=_step)

    def manifest(self, name: str) -> Manifest | None:
        folder = self._folder / name
        try:
            return Manifest.model_validate_json(folder.read(MANIFEST)) if folder.exists(MANIFEST) else None
        except ValueError:
            return None

    def ranked(self) -> list[tuple[str, Manifest]]:
        """Complete checkpoints that end an epoch, by name, best first; of equals the earlier."""
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
                (self._folder / name).delete(MANIFEST)
                self._folder.delete(name)


def _step(name: str) -> int:
    return int(name.rpartition("-")[2])


def _digests(folder: Path) -> dict[str, str]:
    def digest(file: Path) -> str:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()

    return {file.name: digest(file) for file in sorted(folder.iterdir())}
