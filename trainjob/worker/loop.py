"""The loop that every worker runs: optimizer steps, validation, checkpoints, exact resume."""

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import ReduceLROnPlateau

from trainjob.api import TrainJobSpec
from trainjob.data import Preprocessor
from trainjob.data.batch import Batch
from trainjob.data.loaders import TrainingBatches, ahead
from trainjob.evaluation import Scores, check_finite
from trainjob.models import Objective, Trainable
from trainjob.precision import resolve_precision
from trainjob.progress.reporter import Reporter
from trainjob.runs.checkpoints import CheckpointStore
from trainjob.runs.history import History
from trainjob.worker.checkpointing import Checkpointer, TrainingState
from trainjob.worker.distributed import broadcast_buffers, rank, sum_over_ranks, world_size
from trainjob.worker.optim import build_optimizer, build_scheduler
from trainjob.worker.random_states import set_random_states
from trainjob.worker.scoring import Scorer
from trainjob.worker.step_meter import StepMeter
from trainjob.worker.stop_notices import Notices


class Trainer:
    """Trains one model on one rank; ranks meet in the gradients, the sums of losses and at checkpoints.

    `model` is `module` as Ray Train prepared it: with more than one rank, in DistributedDataParallel.
    """

    def __init__(
        self,
        spec: TrainJobSpec,
        module: Trainable[Any],
        model: torch.nn.Module,
        *,
        preprocessor: Preprocessor,
        objective: Objective,
        batches: TrainingBatches,
        batches_per_epoch: int,
        scorer: Scorer,
        store: CheckpointStore,
        reporter: Reporter,
        history: History,
        device: torch.device,
        parts: int = 1,
        is_told_to_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """`parts`: in how many each of a rank's batches is computed; `is_told_to_stop` is asked before each step."""
        training = spec.training
        self.spec, self.module, self.model = spec, module, model
        self.objective = objective
        self.batches, self.scorer = batches, scorer
        self.reporter, self.history, self.device = reporter, history, device
        self.batches_per_epoch = batches_per_epoch
        self.accumulation = training.gradient_accumulation
        self.steps_per_epoch = -(-batches_per_epoch // self.accumulation)
        self.most_steps = training.max_steps or sys.maxsize
        self.steps = min(self.steps_per_epoch * training.epochs, self.most_steps)
        self.validations = -(-self.steps // self.steps_per_epoch)
        """How many there will be, where training does not stop early."""
        if training.validate_every_steps is not None:
            self.validations += self.steps // training.validate_every_steps
        self.log_every = min(50, max(1, self.steps_per_epoch // 20))
        self.optimizer = build_optimizer(training.optimizer, self.module.parameters())
        self.scheduler = build_scheduler(training.scheduler, self.optimizer, self.steps)
        self.dtype = resolve_precision(training.precision, device)
        if device.type == "cpu" and self.dtype != torch.float32:
            module.use_plain_attention()
        self.scaler = torch.GradScaler(device.type, enabled=self.dtype == torch.float16)
        self.state = TrainingState()
        self.checkpointer = Checkpointer(
            store,
            reporter.checkpoint,
            module=module,
            preprocessor=preprocessor,
            optimizer=self.optimizer,
            scheduler=self.scheduler,
            scaler=self.scaler,
            device=device,
        )
        self.parts, self.notices = parts, Notices(is_told_to_stop)
        self.stopped = False
        """Whether training has ended before its time, after a checkpoint, because a rank was told to stop."""
        self._random_states: dict[str, Any] | None = None
        self._buckets_rebuilt = world_size() < 3 or not isinstance(model, DistributedDataParallel)
        self._stage: str | None = None
        self._stage_since = 0.0
        self._meter = StepMeter(self.device)

    # -- training ----------------------------------------------------------------------------------------------------

    def fit(self) -> None:
        """Trains to the last epoch or step, until early stopping ends it, or until a rank is told to stop."""
        state, epochs = self.state, self.spec.training.epochs
        with self.checkpointer:
            while state.epoch < epochs and not self._is_over and not self.stopped:
                self._train_epoch()
                if not state.stopped_early and not self.stopped:
                    self._validate()

    def _train_epoch(self) -> None:
        state = self.state
        self.start_stage("training")
        self.model.train()
        batches = ahead(self.batches.epoch(state.epoch), self.device)
        for _ in range(state.batch):
            next(batches)
        self._restore_random_states()
        self._meter = StepMeter(self.device)
        while not self._is_over and not self.stopped and (group := list(islice(batches, self.accumulation))):
            self._train_group(group)
        if not self._ends_epoch and not self.stopped:
            raise RuntimeError(f"epoch {state.epoch + 1} had {state.batch} batches, not {self.batches_per_epoch}")

    @property
    def _is_over(self) -> bool:
        return self.state.step >= self.most_steps or self.state.stopped_early

    @property
    def _ends_epoch(self) -> bool:
        return self.state.batch == self.batches_per_epoch or self._is_over

    def _train_group(self, group: list[Batch]) -> None:
        """Takes one step: on the mean loss over all that counts in these batches and in those of the other ranks."""
        weight = self._weight_per_rank(group)
        parts = [part for batch in group for part in batch.parts(self.parts)]
        for number, batch in enumerate(parts, start=1):
            moved = batch.to(self.device)
            self._rebuild_buckets(moved)
            with self._gradients_synced(number == len(parts)):
                losses = self.objective.losses(self._answers(moved), moved) * batch.counts
                self.scaler.scale(losses.sum() / weight).backward()
            self._meter.add(batch, losses)
        self.state.batch += len(group)
        self._optimizer_step()

    def _weight_per_rank(self, group: list[Batch]) -> torch.Tensor:
        """The weight of the batches, averaged over ranks as gradients are, float32 []; not 0, where nothing counts."""
        own = torch.full((), sum(batch.weight for batch in group), dtype=torch.float32, device=self.device)
        weight, notices = sum_over_ranks(torch.stack([own, self.notices.own(self.device)]))
        self.notices.hear(notices)
        return weight.clamp(min=1) / world_size()

    def _answers(self, batch: Batch) -> torch.Tensor:
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32):
            return self.model(**batch.inputs)

    def _rebuild_buckets(self, batch: Batch) -> None:
        """Takes DistributedDataParallel past its first backward pass, after which it lays out the gradients anew.

        From three ranks on, the order in which they are added up depends on the layout, so the first steps of a
        resumed run would differ from an unbroken one's. Evaluation mode leaves random states and buffers alone.
        """
        if self._buckets_rebuilt:
            return
        self.model.eval()
        self._answers(batch).sum().backward()
        self.optimizer.zero_grad()
        self.model.train()
        self._buckets_rebuilt = True

    def _optimizer_step(self) -> None:
        state = self.state
        if self.spec.training.gradient_clipping is not None:
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.module.parameters(), self.spec.training.gradient_clipping)
        learning_rate = self.optimizer.param_groups[0]["lr"]
        self.scaler.step(self.optimizer)  # but not where a gradient is too large for float16
        self.scaler.update()
        self.optimizer.zero_grad()
        if self.scheduler is not None and not isinstance(self.scheduler, ReduceLROnPlateau):
            self.scheduler.step()
        state.step += 1
        self.checkpointer.poll()
        ends = self._ends_epoch
        self.stopped = self.notices.stop and not self._is_over
        saves = self.stopped or (not ends and self._is_due(self.spec.checkpoints.every_steps))
        validates = not ends and self._is_due(self.spec.training.validate_every_steps)
        if saves or validates or ends or state.step % self.log_every == 0 or state.step == 1:
            self._log_step(learning_rate)
        else:
            self.reporter.step(state.epoch + 1, state.step, {})
        if validates:
            self._validate()
        elif saves:
            self._save({}, None)
        if saves or validates:
            self.start_stage("training")
            self._meter = StepMeter(self.device)

    def _is_due(self, every: int | None) -> bool:
        return every is not None and self.state.step % every == 0

    def _validate(self) -> None:
        """Measures the model and saves it, at the end of an epoch or inside it. Where early stopping ends training, it
        ends the epoch, too."""
        state = self.state
        self.start_stage("validation")
        broadcast_buffers(self.module)  # each rank has its own after a step; rank 0's are saved
        scores = self.scorer.score(self.module, "validation")
        metrics = {"train_loss": state.loss_sum / state.weight, **scores.as_metrics("validation")}
        if isinstance(self.scheduler, ReduceLROnPlateau):
            self.scheduler.step(metrics["validation_loss"])
        for name, value in metrics.items():
            check_finite(name, value, f"in epoch {state.epoch + 1}")
        self._compare_with_best(metrics[self.spec.checkpoints.metric])
        self.history.add("epoch" if self._ends_epoch else "validation", state.step, state.epoch + 1, metrics)
        if self._ends_epoch:
            state.epoch, state.batch, state.loss_sum, state.weight = state.epoch + 1, 0, 0.0, 0.0
        self._save(metrics, scores)
        self.reporter.validated(state.epoch, metrics)

    def _compare_with_best(self, value: float) -> None:
        """Counts the validations since the best value and stops training when early stopping's patience is used up."""
        state, early = self.state, self.spec.training.early_stopping
        sign = 1 if self.spec.checkpoints.lower_is_better else -1
        min_delta = early.min_delta if early is not None else 0.0
        if state.best is None or sign * (state.best - value) > min_delta:
            state.best, state.validations_since_best = value, 0
        else:
            state.validations_since_best += 1
        state.stopped_early = early is not None and state.validations_since_best >= early.patience

    # -- measurements ------------------------------------------------------------------------------------------------

    def _log_step(self, learning_rate: float) -> None:
        """Records what was measured over all ranks since the last record, and the learning rate of this step."""
        state = self.state
        loss_sum, weight, values = self._meter.over_ranks(self.objective.unit)
        check_finite("the loss", values["loss"], f"at step {state.step}")
        state.loss_sum += loss_sum
        state.weight += weight
        values["learning_rate"] = learning_rate
        self.history.add("step", state.step, state.epoch + 1, values)
        self.reporter.step(state.epoch + 1, state.step, values)
        self._meter = StepMeter(self.device)

    def start_stage(self, stage: str) -> None:
        """From now on, wall time is counted for `stage`."""
        now = time.perf_counter()
        if self._stage is not None:
            self.state.seconds[self._stage] = self.state.seconds.get(self._stage, 0.0) + now - self._stage_since
        self._stage, self._stage_since = stage, now

    def _gradients_synced(self, synced: bool) -> AbstractContextManager[None]:
        if synced or not isinstance(self.model, DistributedDataParallel):
            return nullcontext()
        return self.model.no_sync()

    # -- checkpoints -------------------------------------------------------------------------------------------------

    def _save(self, metrics: dict[str, float], scores: Scores | None) -> None:
        """Begins to save a checkpoint, once the one before it is saved."""
        self.start_stage("checkpoints")
        self.checkpointer.wait()
        if rank() == 0:
            self.history.flush()  # first, so that no checkpoint is without its records
        self.checkpointer.save(self.state, metrics, scores)

    def resume(self, name: str) -> None:
        """Continues from a checkpoint as if training had never been interrupted."""
        self.state, self._random_states = self.checkpointer.restore(name)

    def _restore_random_states(self) -> None:
        if self._random_states is not None:
            set_random_states(self._random_states, self.device)
            self._random_states = None
