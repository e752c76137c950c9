"""The loop that every worker runs: optimizer steps, validation, checkpoints, exact resume."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import ReduceLROnPlateau

from trainjob.api import TrainJobSpec
from trainjob.data import Preprocessor
from trainjob.data.batches.batch import Batch
from trainjob.data.batches.loaders import ahead
from trainjob.evaluation import Scores, check_finite
from trainjob.models import Trainable
from trainjob.precision import resolve_precision
from trainjob.progress.reporter import Reporter
from trainjob.runs.history import History
from trainjob.storage import Folder
from trainjob.worker.checkpointing import Checkpointer, CheckpointStore, TrainingState
from trainjob.worker.distributed import background_group, broadcast_buffers, rank, sum_over_ranks, world_size
from trainjob.worker.loss_divisor import loss_divisor
from trainjob.worker.optim import build_scheduler
from trainjob.worker.random_states import set_random_states
from trainjob.worker.rank_data import RankData
from trainjob.worker.scoring import Scorer
from trainjob.worker.step import Step
from trainjob.worker.step_meter import StepMeter
from trainjob.worker.step_plan import StepPlan
from trainjob.worker.stop_notices import StopNotices


@dataclass(frozen=True)
class TrainerInputs:
    """Everything that one rank trains with."""

    spec: TrainJobSpec
    preprocessor: Preprocessor
    module: Trainable[Any]
    model: torch.nn.Module
    """The module to call in training: `module`, or `module` in DistributedDataParallel."""
    device: torch.device
    data: RankData
    run: Folder
    """The run's folder, for checkpoints and metrics."""
    scratch: Path
    """A local folder for files that are not uploaded yet."""
    reporter: Reporter
    on_rows_scored: Callable[[str, int], None] = lambda name, rows: None
    """See `Scorer`."""
    is_told_to_stop: Callable[[], bool] = lambda: False
    """Called in each step."""


class DueAfterStep(NamedTuple):
    """The actions that are due after an optimizer step."""

    record: bool
    validation: bool
    checkpoint: bool


class Trainer:
    """Trains one model on one rank. The ranks exchange gradients, sums of losses, and what a checkpoint needs."""

    def __init__(self, inputs: TrainerInputs) -> None:
        """All ranks must create their trainers at the same point."""
        spec, module, device, data = inputs.spec, inputs.module, inputs.device, inputs.data
        self.spec, self.module, self.model, self.device = spec, module, inputs.model, device
        self.batches, self.batches_per_epoch = data.training, data.batches_per_epoch
        self.reporter, self.history = inputs.reporter, History(inputs.run, inputs.scratch)
        self.plan = StepPlan.of(spec.training, data.batches_per_epoch)
        dtype = resolve_precision(spec.training.precision, device)
        if device.type == "cpu" and dtype != torch.float32:
            module.use_plain_attention()
        self.step = Step(spec, inputs.preprocessor, module, self.model, device, dtype)
        self.objective, self.optimizer = self.step.objective, self.step.optimizer
        self.scorer = Scorer(data.batches_to_score, self.objective, device, dtype, inputs.on_rows_scored)
        self.scheduler = build_scheduler(spec.training.scheduler, self.optimizer, self.plan.steps)
        self.state = TrainingState()
        self.store = CheckpointStore(inputs.run, spec.checkpoints, background_group())
        self.checkpointer = Checkpointer(
            self.store, self.reporter.checkpoint, self.step, self.scheduler, inputs.preprocessor
        )
        self.stopped = False
        """Whether training has stopped early, after a checkpoint, because a rank was told to stop."""
        self._micro_batches, self._notices = data.micro_batches, StopNotices(inputs.is_told_to_stop)
        self._random_states: dict[str, Any] | None = None
        self._buckets_rebuilt = world_size() < 3 or not isinstance(inputs.model, DistributedDataParallel)
        self._stage: str | None = None
        self._stage_since = 0.0
        self._meter = StepMeter(device)

    # -- training ----------------------------------------------------------------------------------------------------

    def train(self) -> None:
        """Trains to the last epoch or step, until early stopping ends it, or until a rank is told to stop."""
        state, epochs = self.state, self.spec.training.epochs
        with self.checkpointer:
            while state.epoch < epochs and not self._is_over and not self.stopped:
                self._train_epoch()
                if not state.stopped_early and not self.stopped:
                    self._validate()

    def _train_epoch(self) -> None:
        state, accumulation = self.state, self.spec.training.gradient_accumulation
        self.start_stage("training")
        self.model.train()
        batches = ahead(self.batches.epoch(state.epoch), self.device)
        for _ in range(state.batch):
            next(batches)
        self._restore_random_states()
        self._meter = StepMeter(self.device)
        while not self._is_over and not self.stopped and (group := list(islice(batches, accumulation))):
            self._train_group(group)
        if not self._ends_epoch and not self.stopped:
            raise RuntimeError(f"epoch {state.epoch + 1} had {state.batch} batches, not {self.batches_per_epoch}")

    @property
    def _is_over(self) -> bool:
        return self.state.step >= self.plan.most_steps or self.state.stopped_early

    @property
    def _ends_epoch(self) -> bool:
        return self.state.batch == self.batches_per_epoch or self._is_over

    def _train_group(self, group: list[Batch]) -> None:
        """Takes one optimizer step on these batches, then validates, saves and reports where due."""
        weight, notices = self._sums_over_ranks(group)
        self._notices.record(notices)
        self._backward(group, loss_divisor(weight, world_size()))
        learning_rate = self._update()
        self.state.batch += len(group)
        self.state.step += 1
        self.checkpointer.poll()
        self.stopped = self._notices.should_stop() and not self._is_over
        self._perform(self._due(), learning_rate)

    def _sums_over_ranks(self, group: list[Batch]) -> torch.Tensor:
        """The weight of the batches and the stop notices, each summed over all ranks: float32 [2]. In one all-reduce,
        so that the notices cost no communication of their own."""
        weight = torch.full((), sum(batch.weight for batch in group), dtype=torch.float32, device=self.device)
        return sum_over_ranks(torch.stack([weight, self._notices.of_this_rank(self.device)]))

    def _backward(self, group: list[Batch], divisor: torch.Tensor) -> None:
        """Adds the gradients of the batches' losses, each divided by `divisor`."""
        micro_batches = [each for batch in group for each in batch.micro_batches(self._micro_batches)]
        for number, batch in enumerate(micro_batches, start=1):
            moved = batch.to(self.device)
            self._rebuild_buckets(moved)
            with self._gradients_synced(number == len(micro_batches)):
                losses = self.step.backward(moved, divisor)
            self._meter.add(batch, losses)

    def _gradients_synced(self, synced: bool) -> AbstractContextManager[None]:
        if synced or not isinstance(self.model, DistributedDataParallel):
            return nullcontext()
        return self.model.no_sync()

    def _rebuild_buckets(self, batch: Batch) -> None:
        """Runs DistributedDataParallel's first backward pass, after which it lays out the gradients again.

        From three ranks on, the order in which gradients are added up depends on the layout, so the first steps of a
        resumed run would differ from those of an unbroken one. Evaluation mode leaves random states and buffers alone.
        """
        if self._buckets_rebuilt:
            return
        self.model.eval()
        self.step.answers(batch).sum().backward()
        self.optimizer.zero_grad()
        self.model.train()
        self._buckets_rebuilt = True

    def _update(self) -> float:
        """Updates the weights and the learning rate, and returns the learning rate of this step."""
        learning_rate = self.optimizer.param_groups[0]["lr"]
        self.step.update()
        if self.scheduler is not None and not isinstance(self.scheduler, ReduceLROnPlateau):
            self.scheduler.step()
        return learning_rate

    # -- after a step ------------------------------------------------------------------------------------------------

    def _due(self) -> DueAfterStep:
        """The actions that are due after this step. At the end of an epoch, `train` validates, which also saves a
        checkpoint."""
        step, ends = self.state.step, self._ends_epoch
        validation = not ends and self._is_multiple(self.spec.training.validate_every_steps)
        checkpoint = self.stopped or (not ends and self._is_multiple(self.spec.checkpoints.every_steps))
        record = validation or checkpoint or ends or step == 1 or step % self.plan.log_every == 0
        return DueAfterStep(record, validation, checkpoint)

    def _is_multiple(self, every: int | None) -> bool:
        return every is not None and self.state.step % every == 0

    def _perform(self, due: DueAfterStep, learning_rate: float) -> None:
        if due.record:
            self._record_step(learning_rate)
        else:
            self.reporter.step(self.state.epoch + 1, self.state.step, {})
        if due.validation:
            self._validate()
        elif due.checkpoint:
            self._save({}, None)
        if due.validation or due.checkpoint:
            self.start_stage("training")
            self._meter = StepMeter(self.device)

    def _record_step(self, learning_rate: float) -> None:
        """Records the means over all ranks since the last record, and the learning rate of this step."""
        state = self.state
        loss_sum, weight, values = self._meter.over_ranks(self.objective.unit)
        check_finite("the loss", values["loss"], f"at step {state.step}")
        state.loss_sum += loss_sum
        state.weight += weight
        values["learning_rate"] = learning_rate
        self.history.add("step", state.step, state.epoch + 1, values)
        self.reporter.step(state.epoch + 1, state.step, values)
        self._meter = StepMeter(self.device)

    def _validate(self) -> None:
        """Scores the model and saves it, at the end of an epoch or inside it. Early stopping also ends the epoch."""
        state = self.state
        self.start_stage("validation")
        scores, metrics = self._score()
        if isinstance(self.scheduler, ReduceLROnPlateau):
            self.scheduler.step(metrics["validation_loss"])
        self._compare_with_best(metrics[self.spec.checkpoints.metric])
        self.history.add("epoch" if self._ends_epoch else "validation", state.step, state.epoch + 1, metrics)
        if self._ends_epoch:
            state.epoch, state.batch, state.loss_sum, state.weight = state.epoch + 1, 0, 0.0, 0.0
        self._save(metrics, scores)
        self.reporter.validated(state.epoch, metrics)

    def _score(self) -> tuple[Scores, dict[str, float]]:
        """The scores on the validation set, and the metrics of this epoch. Raises Diverged if one is not finite."""
        broadcast_buffers(self.module)  # each rank has its own after a step; rank 0's are saved
        scores = self.scorer.score(self.module, "validation")
        train_loss = self.state.loss_sum / self.state.weight
        metrics = {"train_loss": train_loss, **scores.as_metrics("validation")}
        for name, value in metrics.items():
            check_finite(name, value, f"in epoch {self.state.epoch + 1}")
        return scores, metrics

    def _compare_with_best(self, value: float) -> None:
        """Counts the validations since the best value, and stops training when early stopping's patience is used up."""
        state, early = self.state, self.spec.training.early_stopping
        min_delta = early.min_delta if early is not None else 0.0
        if self.spec.checkpoints.improves(value, state.best, min_delta):
            state.best, state.validations_since_best = value, 0
        else:
            state.validations_since_best += 1
        state.stopped_early = early is not None and state.validations_since_best >= early.patience

    def start_stage(self, stage: str) -> None:
        """Starts counting wall time for `stage`."""
        now = time.perf_counter()
        if self._stage is not None:
            self.state.seconds[self._stage] = self.state.seconds.get(self._stage, 0.0) + now - self._stage_since
        self._stage, self._stage_since = stage, now

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
        if rank() == 0:
            self.store.delete_surplus(name)  # an attempt that ended just before has left them

    def _restore_random_states(self) -> None:
        if self._random_states is not None:
            set_random_states(self._random_states, self.device)
            self._random_states = None
