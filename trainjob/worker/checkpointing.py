"""What a checkpoint holds of a training, and how training goes on from it."""

import io
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

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
from trainjob.worker.saving import Saver
from trainjob.worker.sharded_state import drained, load_optimizer, load_weights, staged
from trainjob.worker.state import TrainingState

_RATES = ("lr", "initial_lr")
"""What changes of the optimizer's groups of parameters."""


@dataclass(frozen=True)
class Checkpointer:
    """Saves and restores all that a rank trains with."""

    store: CheckpointStore
    saver: Saver
    module: Trainable[Any]
    preprocessor: Preprocessor
    optimizer: Optimizer
    scheduler: LRScheduler | ReduceLROnPlateau | None
    scaler: torch.GradScaler
    device: torch.device

    def save(self, state: TrainingState, metrics: dict[str, float], scores: Scores | None) -> None:
        """Has a checkpoint of this moment saved: each rank copies its part now, and writes it while it trains on."""
        rank = self.store.ranks.rank
        copies = staged(self.module, self.optimizer, rank, self.store.ranks.count)
        files = {_random_states(rank): _to_bytes(random_states(self.device))}
        if rank == 0:
            files[PROGRESS] = json.dumps(self._progress(state)).encode()
        if rank == 0 and scores is not None:
            files[EVALUATION] = scores.model_dump_json(by_alias=True).encode()

        def write(folder: Path) -> None:
            write_rank_tensors(folder, rank, drained(copies))
            if rank == 0:
                save_config(self.module, self.preprocessor, folder)
            for name, content in files.items():
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_bytes(content)

        self.saver.begin(state.epoch, state.step, metrics, write)

    def restore(self, name: str) -> tuple[TrainingState, dict[str, Any] | None]:
        """Takes up a checkpoint. Returns how far training had come and, where as many ranks had trained as now, this
        rank's random states. Raises UserError for a checkpoint of an earlier version."""
        folder = self.store / name
        files = files_of(folder)
        if PROGRESS not in files:
            raise UserError(
                f"{folder.uri} is a checkpoint of an earlier version of trainjob: finish the run with that version, "
                "or start anew with --fresh"
            )
        saved, parts = json.loads(folder.read(PROGRESS)), CheckpointTensors(folder, files)
        load_weights(self.module, parts)
        load_optimizer(self.optimizer, self.module, parts)
        for group, rates in zip(self.optimizer.param_groups, saved["rates"], strict=True):
            group.update(rates)
        if self.scheduler is not None:
            self.scheduler.load_state_dict(saved["scheduler"])
        if self.scaler.is_enabled() and saved["scaler"]:  # the attempt before may have had other GPUs
            self.scaler.load_state_dict(saved["scaler"])
        states = None
        if sum(file.startswith(f"{RANKS}/") for file in files) == self.store.ranks.count:
            content = folder.read(_random_states(self.store.ranks.rank))
            states = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        return TrainingState(**saved["state"]), states

    def _progress(self, state: TrainingState) -> dict[str, Any]:
        groups = self.optimizer.param_groups
        return {
            "state": asdict(state),
            "rates": [{name: group[name] for name in _RATES if name in group} for group in groups],
            "scheduler": self.scheduler.state_dict() if self.scheduler is not None else None,
            "scaler": self.scaler.state_dict(),
        }


def _random_states(rank: int) -> str:
    return f"{RANKS}/{rank:05d}.pt"


def _to_bytes(value: Any) -> bytes:
    content = io.BytesIO()
    torch.save(value, content)
    return content.getvalue()
