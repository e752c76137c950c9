"""Rank 0's account of the run: one growing snapshot, sent to the driver."""

import time

from trainjob.api.status import CheckpointStatus, TrainingStatus
from trainjob.training.channel import Sender
from trainjob.training.checkpoints import CheckpointStore


class Reporter:
    """Turns what happens into `TrainingStatus` snapshots; on ranks without a sender it does nothing."""

    def __init__(self, sender: Sender | None, store: CheckpointStore, metric: str, epochs: int) -> None:
        self._sender, self._store, self._metric = sender, store, metric
        self.status = TrainingStatus(stage="Starting", epochs=epochs)
        self._since: tuple[float, int] | None = None
        self._origin = ""

    def begin(self, epoch: int, step: int, steps: int, resumed: str | None) -> None:
        self._since = (time.monotonic(), step)
        self._origin = f"continues from {resumed}" if resumed else ""
        self._update(
            always=True,
            stage="Training",
            message=self._origin,
            epoch=epoch,
            step=step,
            steps=steps,
            percent=round(100 * step / steps, 1),
            latest_checkpoint=self._checkpoint_status(resumed, step, None) if resumed else None,
        )

    def waits(self, why: str) -> None:
        """Tells what training waits for; with an empty text, that it goes on."""
        self._update(always=True, message=why or self._origin)

    def evaluating(self) -> None:
        self._update(always=True, stage="Evaluating", eta=None)

    def step(self, epoch: int, step: int, *, loss: float, rate: float, learning_rate: float) -> None:
        steps = self.status.steps or step
        start, first = self._since or (time.monotonic(), step)
        eta = (time.monotonic() - start) / (step - first) * (steps - step) if step > first else None
        self._update(
            epoch=epoch,
            step=step,
            percent=round(100 * step / steps, 1),
            eta=eta,
            loss=loss,
            samples_per_second=rate,
            learning_rate=learning_rate,
        )

    def checkpoint(self, name: str, epoch: int, step: int, metrics: dict[str, float]) -> None:
        latest = self._checkpoint_status(name, step, metrics.get(self._metric))
        changes: dict[str, object] = {"latest_checkpoint": latest}
        if metrics:
            best, manifest = self._store.ranked()[0]
            changes |= {
                "metrics": metrics,
                "epochs_completed": epoch,
                "best_checkpoint": self._checkpoint_status(best, manifest.step, self._store.value(manifest)),
            }
        self._update(always=True, **changes)

    def _checkpoint_status(self, name: str, step: int, value: float | None) -> CheckpointStatus:
        return CheckpointStatus(uri=self._store.uri(name), step=step, metric=self._metric, value=value)

    def _update(self, *, always: bool = False, **changes: object) -> None:
        if self._sender is not None:
            self.status = self.status.model_copy(update=changes)
            self._sender.send(self.status, always=always)
