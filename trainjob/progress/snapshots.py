"""What the driver tells of the run as a whole: the workers' snapshots and, at the end, how it ended."""

import threading
import time
from collections.abc import Callable
from typing import Any

from trainjob.api.training_status import Phase, TrainingStatus
from trainjob.progress.phases import PhaseClock

SECONDS_BETWEEN_COUNTS = 1.0

OnStatus = Callable[[TrainingStatus], None]


class Snapshots:
    """Passes snapshots on, whatever thread they come from, and nothing after the last one."""

    def __init__(self, on_status: OnStatus) -> None:
        self._on_status = on_status
        self._last = TrainingStatus()
        self._ended = False
        self._clock = PhaseClock()
        self._lock = threading.Lock()

    def add(self, status: TrainingStatus) -> None:
        """Passes on a snapshot of the workers."""
        if status.stage == "Starting":  # they know less than what the run has come to before
            self.starting(status.message)
        else:
            self._add(lambda last: status.model_copy(update={"tuning": status.tuning or last.tuning}))

    def preparing(self, percent: float | None, phase: Callable[[], Phase]) -> None:
        """The driver prepares the data, in a phase that is asked for every second until another stage begins."""
        self._add(lambda _: TrainingStatus(stage="Preparing", percent=percent))
        threading.Thread(target=self._watch, args=(phase,), daemon=True).start()

    def _watch(self, phase: Callable[[], Phase]) -> None:
        while self._last.stage == "Preparing" and not self._ended:
            if (now := phase()).done:
                self.counts(now)
            time.sleep(SECONDS_BETWEEN_COUNTS)

    def starting(self, message: str = "") -> None:
        """The workers start."""
        self._add(
            lambda last: last.model_copy(update={"stage": "Starting", "message": message, "eta": None, "phase": None})
        )

    def restarting(self, failure: Exception) -> None:
        """The workers start again after a failure."""
        self.starting(f"{failure}; starting again")

    def comparing(self) -> None:
        """The baselines are computed."""
        self._add(lambda last: last.model_copy(update={"message": "compares with the baselines", "eta": None}))

    def counts(self, phase: Phase) -> None:
        """A phase of the driver's own is so far."""
        with self._lock:
            if self._ended or not self._clock.is_long(phase):
                return
            self._pass_on(self._last.model_copy(update={"phase": phase, "eta": self._clock.eta(phase)}))

    def take_up(self, reached: TrainingStatus) -> None:
        """Starts from what an earlier attempt has come to."""
        with self._lock:
            self._last = reached

    def end(self, **changes: Any) -> None:
        """Passes on the last snapshot: what is known, with these fields besides."""
        with self._lock:
            self._ended = True
            self._pass_on(self._last.model_copy(update=changes))

    def _add(self, follow: Callable[[TrainingStatus], TrainingStatus]) -> None:
        with self._lock:
            if not self._ended:
                self._pass_on(follow(self._last))

    def _pass_on(self, status: TrainingStatus) -> None:
        self._last = status
        self._on_status(status)
