"""The loop that every worker runs: optimizer steps, validation, checkpoints, exact resume."""

import random
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import ReduceLROnPlateau

from trainjob.api import TrainJobSpec
from trainjob.data.loaders import Batch, Loader
from trainjob.errors import UserError
from trainjob.evaluation import Scores
from trainjob.models import Classifier, load_weights, save_model
from trainjob.progress.reporter import Reporter
from trainjob.runs.checkpoints import CheckpointStore
from trainjob.runs.history import History
from trainjob.training.distributed import gather, share_buffers, sum_over_workers, world_size
from trainjob.training.optim import build_optimizer, build_scheduler, resolve_precision
from trainjob.training.scoring import Losses, Scorer

TRAINER_STATE = "trainer.pt"
SCORES = "evaluation.json"


@dataclass
class Progress:
    """Where a run stands; saved in each checkpoint."""

    epoch: int = 0
    """Epochs completed."""
    batch: int = 0
    """Batches of the current epoch taken, on each rank."""
    step: int = 0
    """Optimizer steps taken."""
    loss_sum: float = 0.0
    """Training losses of the current epoch, over all ranks."""
    samples: int = 0
    """Training rows of the current epoch, over all ranks."""
    best: float | None = None
    """The checkpoints' metric at its best."""
    epochs_since_best: int = 0
    stopped_early: bool = False
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall time by stage, over all attempts."""


class Trainer:
    """Trains one model on one rank; ranks meet in the gradients, the sums of losses and at checkpoints.

    `model` is `module` as Ray Train prepared it: with more than one rank, in DistributedDataParallel.
    """

    def __init__(
        self,
        spec: TrainJobSpec,
        module: Classifier[Any],
        model: torch.nn.Module,
        *,
        losses: Losses,
        loader: Loader,
        batches_per_epoch: int,
        scorer: Scorer,
        store: CheckpointStore,
        reporter: Reporter,
        history: History,
        device: torch.device,
    ) -> None:
        training = spec.training
        self.spec, self.module, self.model = spec, module, model
        self.losses, self.loader, self.scorer = losses, loader, scorer
        self.store, self.reporter, self.history, self.device = store, reporter, history, device
        self.batches_per_epoch = batches_per_epoch
        self.accumulation = training.gradient_accumulation
        self.steps_per_epoch = -(-batches_per_epoch // self.accumulation)
        self.steps = self.steps_per_epoch * training.epochs
        self.log_every = min(50, max(1, self.steps_per_epoch // 20))
        self.optimizer = build_optimizer(training.optimizer, self.module.parameters())
        self.scheduler = build_scheduler(training.scheduler, self.optimizer, self.steps)
        self.dtype = resolve_precision(training.precision, device)
        self.progress = Progress()
        self._random_states: dict[str, Any] | None = None
        self._buckets_settled = world_size() < 3
        self._stage: str | None = None
        self._stage_since = 0.0
        self._reset_recent()

    # -- the story ---------------------------------------------------------------------------------------------------

    def fit(self) -> None:
        """Trains to the last epoch, or until early stopping ends it."""
        progress = self.progress
        while progress.epoch < self.spec.training.epochs and not progress.stopped_early:
            self._train_epoch()
            self._end_epoch()

    def _train_epoch(self) -> None:
        progress = self.progress
        self.enter("training")
        self.model.train()
        batches = self.loader.epoch(progress.epoch)
        for _ in range(progress.batch):
            next(batches)
        self._restore_random_states()
        self._reset_recent()
        for batch in batches:
            moved = batch.to(self.device)
            self._settle_buckets(moved)
            self._train_batch(moved)
        if progress.batch != self.batches_per_epoch:
            raise RuntimeError(f"epoch {progress.epoch + 1} had {progress.batch} batches, not {self.batches_per_epoch}")

    def _train_batch(self, batch: Batch) -> None:
        progress = self.progress
        first = progress.batch - progress.batch % self.accumulation
        group = min(self.accumulation, self.batches_per_epoch - first)
        progress.batch += 1
        last = progress.batch == first + group
        with self._gradients_synced(last):
            losses = self.losses(self._logits(batch), batch.labels)
            (losses.mean() / group).backward()
        self._recent_loss += losses.detach().sum(dtype=torch.float64)
        self._recent_samples += len(batch)
        if last:
            self._optimizer_step()

    def _logits(self, batch: Batch) -> torch.Tensor:
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32):
            return self.model(**batch.inputs).float()

    def _settle_buckets(self, batch: Batch) -> None:
        """Takes DistributedDataParallel past its first backward pass, after which it lays out the gradients anew.

        From three ranks on, the order in which they are added up depends on the layout, so the first steps of a
        resumed run would differ from an unbroken one's. Evaluation mode leaves random states and buffers alone.
        """
        if self._buckets_settled:
            return
        self.model.eval()
        self._logits(batch).sum().backward()
        self.optimizer.zero_grad()
        self.model.train()
        self._buckets_settled = True

    def _optimizer_step(self) -> None:
        progress = self.progress
        if self.spec.training.gradient_clipping is not None:
            torch.nn.utils.clip_grad_norm_(self.module.parameters(), self.spec.training.gradient_clipping)
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.scheduler is not None and not isinstance(self.scheduler, ReduceLROnPlateau):
            self.scheduler.step()
        progress.step += 1
        ends_epoch = progress.batch == self.batches_per_epoch
        every = self.spec.checkpoints.every_steps
        saves = every is not None and progress.step % every == 0 and not ends_epoch
        if saves or ends_epoch or progress.step % self.log_every == 0 or progress.step == 1:
            self._log_step()
        if saves:
            self._save({}, None)
            self.enter("training")
            self._reset_recent()

    def _end_epoch(self) -> None:
        progress = self.progress
        self.enter("validation")
        share_buffers(self.module)  # each rank has its own after a step; rank 0's are saved
        scores = self.scorer.score(self.module, "validation")
        metrics = {"train_loss": progress.loss_sum / progress.samples, **scores.as_metrics("validation")}
        if isinstance(self.scheduler, ReduceLROnPlateau):
            self.scheduler.step(metrics["validation_loss"])
        progress.epoch, progress.batch, progress.loss_sum, progress.samples = progress.epoch + 1, 0, 0.0, 0
        self._judge(metrics[self.spec.checkpoints.metric])
        self.history.add("epoch", progress.step, progress.epoch, metrics)
        self._save(metrics, scores)

    def _judge(self, value: float) -> None:
        """Counts the epochs since the best value and stops when patience is at its end."""
        progress, early = self.progress, self.spec.training.early_stopping
        sign = 1 if self.spec.checkpoints.lower_is_better else -1
        min_delta = early.min_delta if early is not None else 0.0
        if progress.best is None or sign * (progress.best - value) > min_delta:
            progress.best, progress.epochs_since_best = value, 0
        else:
            progress.epochs_since_best += 1
        progress.stopped_early = early is not None and progress.epochs_since_best >= early.patience

    # -- what is measured --------------------------------------------------------------------------------------------

    def _reset_recent(self) -> None:
        self._recent_loss = torch.zeros((), dtype=torch.float64, device=self.device)
        self._recent_samples = 0
        self._recent_since = time.perf_counter()

    def _log_step(self) -> None:
        """Sums the losses since the last time over all workers."""
        progress = self.progress
        own = torch.stack([self._recent_loss, self._recent_loss.new_tensor(self._recent_samples)])
        loss_sum, samples = sum_over_workers(own).tolist()
        loss, rate = loss_sum / samples, samples / (time.perf_counter() - self._recent_since)
        if not np.isfinite(loss):
            raise UserError(
                f"training diverged: the loss is {loss} at step {progress.step}. Lower the optimizer's learningRate, "
                "add a warm-up (spec.training.scheduler) or set spec.training.gradientClipping."
            )
        progress.loss_sum += loss_sum
        progress.samples += int(samples)
        learning_rate = self.optimizer.param_groups[0]["lr"]
        values = {"loss": loss, "learning_rate": learning_rate, "samples_per_second": rate}
        self.history.add("step", progress.step, progress.epoch + 1, values)
        self.reporter.step(progress.epoch + 1, progress.step, loss=loss, rate=rate, learning_rate=learning_rate)
        self._reset_recent()

    def enter(self, stage: str) -> None:
        """From now on, time counts for `stage`."""
        now = time.perf_counter()
        if self._stage is not None:
            self.progress.seconds[self._stage] = self.progress.seconds.get(self._stage, 0.0) + now - self._stage_since
        self._stage, self._stage_since = stage, now

    def _gradients_synced(self, synced: bool) -> AbstractContextManager[None]:
        if synced or not isinstance(self.model, DistributedDataParallel):
            return nullcontext()
        return self.model.no_sync()

    # -- checkpoints -------------------------------------------------------------------------------------------------

    def _save(self, metrics: dict[str, float], scores: Scores | None) -> None:
        """Stores a checkpoint: rank 0 writes, every rank gives its random states."""
        self.enter("checkpoints")
        ranks = gather(_random_states(self.device))
        if ranks is None:
            return
        progress = self.progress
        state = {
            "progress": asdict(progress),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict() if self.scheduler is not None else None,
            "random_states": ranks,
        }

        def write(folder: Path) -> None:
            save_model(self.module, self.scorer.preprocessor, folder)
            torch.save(state, folder / TRAINER_STATE)
            if scores is not None:
                (folder / SCORES).write_text(scores.model_dump_json(by_alias=True))

        self.history.flush()  # first, so that no checkpoint is without its records
        name = self.store.save(progress.epoch, progress.step, metrics, write)
        self.reporter.checkpoint(name, progress.epoch, progress.step, metrics)

    def resume(self, folder: Path, rank: int) -> None:
        """Continues from a checkpoint's folder as if there had been no break."""
        load_weights(self.module, folder)
        state = torch.load(folder / TRAINER_STATE, map_location="cpu", weights_only=True)
        self.optimizer.load_state_dict(state["optimizer"])
        if self.scheduler is not None:
            self.scheduler.load_state_dict(state["scheduler"])
        self.progress = Progress(**state["progress"])
        self._random_states = state["random_states"][rank] if len(state["random_states"]) == world_size() else None

    def _restore_random_states(self) -> None:
        if self._random_states is not None:
            _set_random_states(self._random_states, self.device)
            self._random_states = None


def _random_states(device: torch.device) -> dict[str, Any]:
    """Of types that are loaded without running code."""
    numpy = np.random.get_state(legacy=False)
    numpy["state"]["key"] = numpy["state"]["key"].tolist()
    return {
        "python": random.getstate(),
        "numpy": numpy,
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state(device) if device.type == "cuda" else None,
    }


def _set_random_states(states: dict[str, Any], device: torch.device) -> None:
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
    if states["cuda"] is not None and device.type == "cuda":
        torch.cuda.set_rng_state(states["cuda"], device)
