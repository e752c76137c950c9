"""Rank 0's progress report: one growing snapshot, sent to the driver."""

import time
from threading import Lock
from typing import Any

from trainjob.api.training_status import CheckpointStatus, TrainingPhase, TrainingStatus
from trainjob.progress.channel import Direct, Sender
from trainjob.progress.percent import Workload
from trainjob.progress.phases import PhaseClock
from trainjob.runs.checkpoints import Manifest, SavedCheckpoints
from trainjob.runs.history import is_last_best, last_metrics


class Reporter:
    """Turns events of training into `TrainingStatus` snapshots. Does nothing on ranks without a sender."""

    def __init__(self, sender: Sender | Direct | None, saved: SavedCheckpoints, epochs: int) -> None:
        self._sender, self._saved, self._epochs = sender, saved, epochs
        self._checkpoints = saved.spec
        self._best: float | None = None
        """Best value of the metric that ranks checkpoints, also of those that are still being saved."""
        self.status = TrainingStatus(stage="Starting", epochs=epochs)
        self._workload = Workload()
        self._validations, self._planned = 0.0, 1
        """Validations done, and planned in total."""
        self._since: tuple[float, int] | None = None
        self._eta: float | None = None
        """Remaining seconds of training, as of the last recorded step."""
        self._last_scored: dict[str, int] = {}
        """Rows of each set that have been scored with the best checkpoint."""
        self._origin = ""
        self._clock = PhaseClock()
        self._lock = Lock()

    def starting(self, what: str) -> None:
        """Rank 0 begins a step of its preparation."""
        if self._sender is not None:
            self._sender.send(TrainingStatus(stage="Starting", phase=TrainingPhase(name=what)), always=True)

    def plan(self, workload: Workload, validations: int) -> None:
        """Sets the total work, from which `percent` is computed."""
        self._workload, self._planned = workload, max(1, validations)

    def begin(
        self, completed: int, step: int, steps: int, workers: int, resumed: str | None, records: list[dict[str, Any]]
    ) -> None:
        """Training begins after `step` and `completed` epochs, with `workers` workers. If it is `resumed` from a
        checkpoint, `records` are those of the run's history."""
        self._validations = self._planned * step // steps
        self._since = (time.monotonic(), step)
        epoch = min(completed + 1, self._epochs)  # there may be no epoch left
        changes: dict[str, object] = {"epoch": epoch, "step": step, "steps": steps, "workers": workers}
        if resumed and self._sender:
            self._origin = f"continues from {resumed}"
            best = self._best_checkpoint()
            if best is not None:
                self._best = self._saved.value(best[1])
            changes |= {
                "message": self._origin,
                "epochs_completed": completed,
                "metrics": last_metrics(records),
                "is_best": is_last_best(records, self._checkpoints),
                "latest_checkpoint": self._checkpoint_status(resumed, step, None),
                "best_checkpoint": self._best_status(best),
            }
        percent = self._percent(step / steps)
        self._update(always=True, stage="Training", percent=percent, phase=None, **changes)

    def waits(self, why: str) -> None:
        """Training waits for something; an empty text ends the wait."""
        self._update(always=True, message=why or self._origin)

    def restarting(self) -> None:
        """Training was asked to stop, and will continue with other workers."""
        self._update(always=True, stage="Starting", message="a checkpoint is saved; workers restart from it")

    def evaluating(self, what: str) -> None:
        """Training is over; rank 0 begins a step of the evaluation."""
        phase = TrainingPhase(name=what)
        self._update(always=True, stage="Evaluating", eta=None, phase=phase)

    def scored(self, name: str, done: int, total: int) -> None:
        """`done` of `total` rows of the set `name` have been scored."""
        done = min(done, total)
        is_last = self.status.stage == "Evaluating"
        if is_last:
            self._last_scored[name] = done
        shown = self._clock.observe(TrainingPhase(name=name, done=done, total=total, unit="rows"))
        if shown is not None:
            of_last = sum(self._last_scored.values()) / max(1, self._workload.final)
            percent = (
                self._percent(1.0, 0.0, of_last) if is_last else self._percent(self._trained, done / max(1, total))
            )
            self._update(always=False, phase=shown[0], eta=shown[1], percent=percent)

    def step(self, epoch: int, step: int, values: dict[str, float]) -> None:
        """A step was recorded; the keys of `values` are fields of the status."""
        steps = self.status.steps or step
        start, first = self._since or (time.monotonic(), step)
        eta = (time.monotonic() - start) / (step - first) * (steps - step) if step > first else None
        self._eta = eta
        percent = self._percent(step / steps)
        self._update(always=False, epoch=epoch, step=step, percent=percent, eta=eta, phase=None, **values)

    @property
    def _trained(self) -> float:
        return self.status.step / self.status.steps if self.status.steps else 0.0

    def _percent(self, trained: float, validating: float = 0.0, scored: float = 0.0) -> float:
        """The percentage done, from the fractions done of the steps, of the current validation and of the final
        scoring."""
        validated = min(1.0, (self._validations + validating) / self._planned)
        return self._workload.percent(trained, validated, scored)

    def validated(self, completed: int, metrics: dict[str, float]) -> None:
        """The model was validated after `completed` epochs; its checkpoint is being saved."""
        self._clock = PhaseClock()
        self._validations += 1
        value = metrics[self._checkpoints.metric]
        is_best = self._checkpoints.improves(value, self._best)
        if is_best:
            self._best = value
        self._update(
            always=True,
            epochs_completed=completed,
            metrics=metrics,
            is_best=is_best,
            phase=None,
            eta=self._eta,
            percent=self._percent(self._trained),
        )

    def checkpoint(self, name: str, step: int, metrics: dict[str, float]) -> None:
        """A checkpoint was saved; `metrics` is empty unless it was validated."""
        if self._sender is None:
            return
        latest = self._checkpoint_status(name, step, metrics.get(self._checkpoints.metric))
        best = {"best_checkpoint": self._best_status(self._best_checkpoint())} if metrics else {}
        self._update(always=True, latest_checkpoint=latest, **best)

    def _best_checkpoint(self) -> tuple[str, Manifest] | None:
        """The best of the validated checkpoints, with its name."""
        return next(iter(self._saved.ranked()), None)

    def _best_status(self, best: tuple[str, Manifest] | None) -> CheckpointStatus | None:
        if best is None:
            return None
        name, manifest = best
        return self._checkpoint_status(name, manifest.step, self._saved.value(manifest))

    def _checkpoint_status(self, name: str, step: int, value: float | None) -> CheckpointStatus:
        return CheckpointStatus(uri=self._saved.uri(name), step=step, metric=self._checkpoints.metric, value=value)

    def _update(self, *, always: bool = False, **changes: object) -> None:
        if self._sender is None:
            return
        with self._lock:  # the checkpoint thread reports its waits
            self.status = self.status.model_copy(update=changes)
            self._sender.send(self.status, always=always)
