"""Decides when a checkpoint is saved, what it contains and how long it is kept, and continues from one.

Training saves a checkpoint after each validation, every `checkpoints.everySteps` steps, and before it stops for a
restart (`Trainer._due`). A checkpoint is kept while it is the latest, or among the best `checkpoints.keep`. The format
of the files is in `runs/checkpoints.py`; the rows that a rank copies, writes and reads of each tensor are in
`sharded_tensors.py`.
"""

import io
import json
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
from torch.distributed import ProcessGroup
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from trainjob.api import Checkpoints
from trainjob.data import Preprocessor
from trainjob.errors import TransientError, UserError
from trainjob.evaluation import Scores
from trainjob.models import save_config
from trainjob.runs.checkpoints import (
    MANIFEST,
    PROGRESS,
    RANKS,
    CheckpointTensors,
    Manifest,
    SavedCheckpoints,
    checkpoint_name,
    files_of,
    random_states_file,
    step_of,
    write_rank_tensors,
)
from trainjob.runs.digests import digests_of, first_changed
from trainjob.runs.files import EVALUATION
from trainjob.scratch import scratch_folder
from trainjob.storage import Folder, storage_errors
from trainjob.worker.distributed import agree, broadcast_from_rank_0, gather_on_rank_0, rank, world_size
from trainjob.worker.random_states import random_states
from trainjob.worker.sharded_tensors import copy_rows, in_host_memory, load_optimizer, load_weights
from trainjob.worker.step import Step

_RATES = ("lr", "initial_lr")
"""The keys of the optimizer's parameter groups that change during training."""


@dataclass
class TrainingState:
    """How far training has come; saved in each checkpoint."""

    epoch: int = 0
    """Epochs completed."""
    batch: int = 0
    """Batches of the current epoch taken, on each rank."""
    step: int = 0
    """Optimizer steps taken."""
    loss_sum: float = 0.0
    """Sum of the training losses of the current epoch, over all ranks."""
    weight: float = 0.0
    """The weight of these losses."""
    best: float | None = None
    """The best value so far of the checkpoints' metric."""
    validations_since_best: int = 0
    stopped_early: bool = False
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall time by stage, over all attempts."""


class CheckpointStore(SavedCheckpoints):
    """Saves, verifies and deletes the checkpoints of a run. Every rank calls the same methods in the same order.

    It does not use `ray.train.report`: a checkpoint is valid as soon as it is in storage, and the code is the same with
    and without a Ray cluster.
    """

    def __init__(self, run: Folder, spec: Checkpoints, group: ProcessGroup | None = None) -> None:
        """`group`: the process group in which the ranks communicate; by default, the one that they train in."""
        super().__init__(run, spec)
        self._group = group

    def save(self, epoch: int, step: int, metrics: dict[str, float], write: Callable[[Path], None]) -> str:
        """Saves the files that `write` puts into a folder, deletes surplus checkpoints and returns its name.

        Each rank writes different files."""
        name = checkpoint_name(epoch, step)
        if rank() == 0:
            self._folder.delete(name)
        # no rank writes before rank 0 has deleted the remains of an earlier attempt
        broadcast_from_rank_0(None, self._group)
        with scratch_folder() as local:
            with storage_errors(str(local)):
                write(local)
            self._folder.upload(local, name)
            self._folder.flush(name)  # the manifest must not outlive the files in a crash of the machine
            parts = gather_on_rank_0(digests_of(local), self._group)
        if parts is not None:
            files = {file: digest for part in parts for file, digest in part.items()}
            manifest = Manifest(epoch=epoch, step=step, metrics=metrics, files=files)
            (self / name).write(MANIFEST, manifest.model_dump_json(indent=1).encode())
            self.delete_surplus(name)
        return name

    def latest(self) -> str | None:
        """The latest intact checkpoint, or None if there is none."""
        names = broadcast_from_rank_0(self.names() if rank() == 0 else None, self._group)
        return next((name for name in reversed(names) if self.is_intact(name)), None)

    def best(self) -> tuple[str, Manifest]:
        """The best intact checkpoint that was validated. Raises TransientError if there is none."""
        for name, manifest in broadcast_from_rank_0(self.ranked() if rank() == 0 else None, self._group):
            if self.is_intact(name):
                return name, manifest
        raise TransientError(f"{self._folder.uri}: no validated checkpoint is intact")

    def is_intact(self, name: str) -> bool:
        """Whether all files of a checkpoint match the digests in its manifest; each rank reads some of the files."""
        return agree(self._files_of_this_rank_match(name), self._group)

    def _files_of_this_rank_match(self, name: str) -> bool:
        manifest = self.manifest(name)
        if manifest is None or not manifest.files:
            return False
        files_of_this_rank = sorted(manifest.files)[rank() :: world_size()]
        return first_changed(self / name, {file: manifest.files[file] for file in files_of_this_rank}) is None

    def delete_surplus(self, latest: str) -> None:
        """Deletes the checkpoints before `latest` that are not among the best `keep`. Only rank 0 may call this.

        Later ones stay: another attempt wrote them, or they are incomplete and will be replaced."""
        kept = {name for name, _ in self.ranked()[: self.spec.keep]}
        for name in self.names():
            if step_of(name) < step_of(latest) and name not in kept:
                (self / name).delete(MANIFEST)
                self._folder.delete(name)


class Checkpointer:
    """Saves and restores everything that a rank trains with. Every rank saves the same checkpoints.

    A checkpoint is saved in a background thread while training continues, one at a time. If that fails, the method that
    is called next raises the error. As a context manager, it waits for the last checkpoint.
    """

    def __init__(
        self,
        store: CheckpointStore,
        on_saved: Callable[[str, int, dict[str, float]], None],
        step: Step,
        scheduler: LRScheduler | ReduceLROnPlateau | None,
        preprocessor: Preprocessor,
    ) -> None:
        """`on_saved` is called with a checkpoint's name, step and metrics, in the thread that calls these methods."""
        self._store, self._on_saved = store, on_saved
        self._step, self._scheduler, self.preprocessor = step, scheduler, preprocessor
        self._thread = ThreadPoolExecutor(1, "checkpoint")
        self._saving: tuple[Future[str], int, dict[str, float]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.wait()
            return
        with suppress(Exception):  # the block's own error is raised
            self.wait()

    def save(self, state: TrainingState, metrics: dict[str, float], scores: Scores | None) -> None:
        """Begins to save a checkpoint, once the one before it is saved: copies this rank's part now, and writes the
        copy in the background."""
        self.wait()
        write = self._copy(state, scores)
        self._saving = (
            self._thread.submit(self._store.save, state.epoch, state.step, metrics, write),
            state.step,
            metrics,
        )

    def poll(self) -> None:
        """Calls `on_saved` if a checkpoint has been saved since the last call."""
        if self._saving is not None and self._saving[0].done():
            self.wait()

    def wait(self) -> None:
        """Waits for the checkpoint that is being saved."""
        if self._saving is not None:
            (future, step, metrics), self._saving = self._saving, None
            self._on_saved(future.result(), step, metrics)

    def _copy(self, state: TrainingState, scores: Scores | None) -> Callable[[Path], None]:
        """Copies this rank's part of a checkpoint. Returns a function that writes the copy into a folder."""
        module, preprocessor, number = self._step.module, self.preprocessor, rank()
        tensors = copy_rows(module, self._step.optimizer, number, world_size())
        files = {random_states_file(number): _to_bytes(random_states(self._step.device))}
        if number == 0:
            files[PROGRESS] = json.dumps(self._progress(state)).encode()
        if number == 0 and scores is not None:
            files[EVALUATION] = scores.model_dump_json(by_alias=True).encode()
            preprocessor = replace(preprocessor, target=preprocessor.target.decided(scores))

        def write(folder: Path) -> None:
            write_rank_tensors(folder, number, in_host_memory(tensors))
            if number == 0:
                save_config(module, preprocessor, folder)
            for name, content in files.items():
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_bytes(content)

        return write

    def _progress(self, state: TrainingState) -> dict[str, Any]:
        groups = self._step.optimizer.param_groups
        return {
            "state": asdict(state),
            "rates": [{name: group[name] for name in _RATES if name in group} for group in groups],
            "scheduler": self._scheduler.state_dict() if self._scheduler is not None else None,
            "scaler": self._step.scaler.state_dict(),
        }

    def restore(self, name: str) -> tuple[TrainingState, dict[str, Any] | None]:
        """Loads a checkpoint. Returns the state of training and this rank's random states; None in their place if the
        checkpoint was saved by another number of ranks. Raises UserError for a checkpoint of an earlier version."""
        folder = self._store / name
        files = files_of(folder)
        if PROGRESS not in files:
            raise UserError(
                f"{folder.uri} is a checkpoint of an earlier version of trainjob: finish the run with that version, "
                "or start over with --fresh"
            )
        progress, tensors = json.loads(folder.read(PROGRESS)), CheckpointTensors(folder, files)
        module, optimizer, scaler = self._step.module, self._step.optimizer, self._step.scaler
        load_weights(module, tensors)
        load_optimizer(optimizer, module, tensors)
        for group, rates in zip(optimizer.param_groups, progress["rates"], strict=True):
            group.update(rates)
        if self._scheduler is not None:
            self._scheduler.load_state_dict(progress["scheduler"])
        if scaler.is_enabled() and progress["scaler"]:  # the attempt before may have had other GPUs
            scaler.load_state_dict(progress["scaler"])
        states = None
        if sum(file.startswith(f"{RANKS}/") for file in files) == world_size():
            content = folder.read(random_states_file(rank()))
            states = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        return TrainingState(**progress["state"]), states


def _to_bytes(value: Any) -> bytes:
    content = io.BytesIO()
    torch.save(value, content)
    return content.getvalue()
