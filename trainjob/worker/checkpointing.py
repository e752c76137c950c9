"""Saves checkpoints of training and continues from them.

The files' format is in `runs/checkpoints.py` (folder and manifest) and `runs/checkpoint_tensors.py` (tensors); which
rows of a sharded tensor a rank writes and reads is in `sharded_tensors.py`.
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
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from trainjob.data import Preprocessor
from trainjob.errors import UserError
from trainjob.evaluation import Scores
from trainjob.models import Trainable, save_config
from trainjob.runs.checkpoint_tensors import PROGRESS, RANKS, CheckpointTensors, write_rank_tensors
from trainjob.runs.checkpoints import CheckpointStore, files_of
from trainjob.runs.files import EVALUATION
from trainjob.worker.random_states import random_states
from trainjob.worker.sharded_tensors import copy_rows, in_host_memory, load_optimizer, load_weights

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


class Checkpointer:
    """Saves and restores everything that a rank trains with. Every rank saves the same checkpoints.

    A checkpoint is saved in a background thread while training continues, one at a time. If that fails, the method that
    is called next raises the error. As a context manager, it waits for the last checkpoint.
    """

    def __init__(
        self,
        store: CheckpointStore,
        on_saved: Callable[[str, int, dict[str, float]], None],
        *,
        module: Trainable[Any],
        preprocessor: Preprocessor,
        optimizer: Optimizer,
        scheduler: LRScheduler | ReduceLROnPlateau | None,
        scaler: torch.GradScaler,
        device: torch.device,
    ) -> None:
        """`on_saved` is called with a checkpoint's name, step and metrics, in the thread that calls these methods."""
        self.store, self._on_saved = store, on_saved
        self._module, self.preprocessor, self._optimizer = module, preprocessor, optimizer
        self._scheduler, self._scaler, self._device = scheduler, scaler, device
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
            self._thread.submit(self.store.save, state.epoch, state.step, metrics, write),
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
        rank = self.store.ranks.rank
        tensors = copy_rows(self._module, self._optimizer, rank, self.store.ranks.count)
        files = {_random_states_file(rank): _to_bytes(random_states(self._device))}
        if rank == 0:
            files[PROGRESS] = json.dumps(self._progress(state)).encode()
        preprocessor = self.preprocessor
        if scores is not None:
            preprocessor = replace(preprocessor, target=preprocessor.target.decided(scores))
        if rank == 0 and scores is not None:
            files[EVALUATION] = scores.model_dump_json(by_alias=True).encode()

        def write(folder: Path) -> None:
            write_rank_tensors(folder, rank, in_host_memory(tensors))
            if rank == 0:
                save_config(self._module, preprocessor, folder)
            for name, content in files.items():
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_bytes(content)

        return write

    def _progress(self, state: TrainingState) -> dict[str, Any]:
        groups = self._optimizer.param_groups
        return {
            "state": asdict(state),
            "rates": [{name: group[name] for name in _RATES if name in group} for group in groups],
            "scheduler": self._scheduler.state_dict() if self._scheduler is not None else None,
            "scaler": self._scaler.state_dict(),
        }

    def restore(self, name: str) -> tuple[TrainingState, dict[str, Any] | None]:
        """Loads a checkpoint. Returns the state of training and this rank's random states; None in their place if the
        checkpoint was saved by another number of ranks. Raises UserError for a checkpoint of an earlier version."""
        folder = self.store / name
        files = files_of(folder)
        if PROGRESS not in files:
            raise UserError(
                f"{folder.uri} is a checkpoint of an earlier version of trainjob: finish the run with that version, "
                "or start over with --fresh"
            )
        progress, tensors = json.loads(folder.read(PROGRESS)), CheckpointTensors(folder, files)
        load_weights(self._module, tensors)
        load_optimizer(self._optimizer, self._module, tensors)
        for group, rates in zip(self._optimizer.param_groups, progress["rates"], strict=True):
            group.update(rates)
        if self._scheduler is not None:
            self._scheduler.load_state_dict(progress["scheduler"])
        if self._scaler.is_enabled() and progress["scaler"]:  # the attempt before may have had other GPUs
            self._scaler.load_state_dict(progress["scaler"])
        states = None
        if sum(file.startswith(f"{RANKS}/") for file in files) == self.store.ranks.count:
            content = folder.read(_random_states_file(self.store.ranks.rank))
            states = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        return TrainingState(**progress["state"]), states


def _random_states_file(rank: int) -> str:
    return f"{RANKS}/{rank:05d}.pt"


def _to_bytes(value: Any) -> bytes:
    content = io.BytesIO()
    torch.save(value, content)
    return content.getvalue()
