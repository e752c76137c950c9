"""The driver's progress report on the whole run: the workers' snapshots and, at the end, the outcome."""

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from trainjob.api.training_status import TrackingStatus, TrainingPhase, TrainingStatus
from trainjob.doing import DOING, ROWS
from trainjob.progress.phases import SECONDS, SILENT_SECONDS, PhaseClock
from trainjob.runs.trials import TrialSteps

WATCH_INTERVAL_SECONDS = 1.0

OnStatus = Callable[[TrainingStatus], None]
CurrentPhase = Callable[[], TrainingPhase]


class Snapshots:
    """Passes snapshots on from any thread, and nothing after the last one. Every second it also reports the progress of
    long phases, and for how long the workers have been silent."""

    def __init__(self, on_status: OnStatus, workers: int = 1) -> None:
        """`workers`: the number of workers."""
        self._pass_on, self._workers = on_status, workers
        self.code: str | None = None
        """The version of a function's code, added to every snapshot."""
        self._tracking: list[TrackingStatus] = []
        self._last = TrainingStatus()
        """The last snapshot, without the phase that the driver adds."""
        self._work: CurrentPhase | None = None
        """The current phase besides training steps; None while the workers report it themselves."""
        self._trials: CurrentPhase | None = None
        self._heard = time.monotonic()
        self._watching, self._ended = False, threading.Event()
        self._clock = PhaseClock()
        self._lock = threading.Lock()
        self.trial: Callable[[TrialSteps], None] = lambda _: None
        """Called with the progress of each trial of a search."""

    def add(self, status: TrainingStatus) -> None:
        """Passes on a snapshot from the workers."""
        if status.stage == "Starting":  # workers do not know the progress of earlier attempts
            if status.phase is None:
                self.starting(status.message)
            else:
                self.working(partial(_rows_or, status.phase))
            return
        if (phase := status.phase) is not None and phase.total is None:
            self.working(lambda: phase)
            status = status.model_copy(update={"phase": None})
        elif status.stage == "Training" or status.phase is not None:
            self._work = self._trials if status.steps is None else None
        self._add(lambda last: _after(last, status))

    def preparing(self, percent: float | None) -> None:
        """The driver begins to prepare the data."""
        self.working(_this_process)
        self._add(lambda _: TrainingStatus(stage="Preparing", percent=percent))

    def starting(self, message: str = "") -> None:
        """The workers begin to start."""
        workers = f"{self._workers} workers" if self._workers > 1 else "the worker"
        self.working(partial(_rows_or, TrainingPhase(name=f"starting {workers}")))
        self._add(
            lambda last: last.model_copy(update={"stage": "Starting", "message": message, "eta": None, "phase": None})
        )

    def restarting(self, failure: Exception) -> None:
        """The workers are restarted after a failure."""
        self.starting(f"{failure}; starting again")

    def search(self, trials: CurrentPhase) -> None:
        """A search begins; `trials` returns its progress. Ends when workers start again."""
        self._trials = trials
        self.working(trials)

    def finishing(self) -> None:
        """The workers have ended; the driver finishes the run."""
        self.working(_this_process)
        self._add(lambda last: last.model_copy(update={"eta": None, "phase": None}))

    def comparing(self) -> None:
        """The driver begins to compute the baselines."""
        self.working(_this_process)
        self._add(lambda last: last.model_copy(update={"message": "comparing with the baselines", "eta": None}))

    def working(self, work: CurrentPhase) -> None:
        """Sets the current phase. Phases that count nothing show elapsed seconds."""
        self._work = work
        if not self._watching:
            self._watching = True
            threading.Thread(target=self._watch, daemon=True).start()

    def tracked(self, tracking: list[TrackingStatus]) -> None:
        """Updates the status of the experiment trackers."""
        self._tracking = tracking
        self._add(lambda last: last)

    def take_up(self, reached: TrainingStatus) -> None:
        """Starts from the progress of an earlier attempt."""
        with self._lock:
            self._last = reached

    def end(self, **changes: Any) -> None:
        """Passes on the last snapshot with these changes; nothing is passed on after it."""
        with self._lock:
            self._ended.set()
            self._on_status(self._last.model_copy(update=changes))

    def close(self) -> None:
        """Stops passing snapshots on."""
        self._ended.set()

    def _watch(self) -> None:
        while not self._ended.wait(WATCH_INTERVAL_SECONDS):
            work = self._work
            shown = self._silence() if work is None else self._clock.observe(work())
            if shown is None:
                continue
            phase, eta = shown
            with self._lock:
                if not self._ended.is_set():
                    self._on_status(self._last.model_copy(update={"phase": phase, "eta": eta}))

    def _silence(self) -> tuple[TrainingPhase, float | None] | None:
        """A phase that shows for how long the workers have been silent, with the last known ETA; None if not long."""
        seconds, last = time.monotonic() - self._heard, self._last
        if seconds < SILENT_SECONDS or last.phase is not None:
            return None
        if last.stage == "Training":
            unit = "report" if last.steps is None else "step"
            name = f"since {unit} {last.step:,}" if last.step else f"first {unit}"
        else:
            name = "working"
        return TrainingPhase(name=name, done=int(seconds), unit=SECONDS), last.eta

    def _on_status(self, status: TrainingStatus) -> None:
        self._pass_on(status.model_copy(update={"code": self.code or status.code, "tracking": self._tracking}))

    def _add(self, follow: Callable[[TrainingStatus], TrainingStatus]) -> None:
        with self._lock:
            if not self._ended.is_set():
                self._last, self._heard = follow(self._last), time.monotonic()
                self._on_status(self._last)


def _after(last: TrainingStatus, status: TrainingStatus) -> TrainingStatus:
    """A snapshot from the workers, completed with the state of the search."""
    if last.tuning is None and status.tuning is None:
        return status
    percent = max(last.percent or 0.0, status.percent or 0.0)  # the best trial is scored once more
    return status.model_copy(update={"tuning": status.tuning or last.tuning, "percent": percent})


def _this_process() -> TrainingPhase:
    now = DOING.now
    return TrainingPhase(
        name=now.name or "preparing", done=now.done, total=now.total and max(now.total, now.done), unit=now.unit
    )


def _rows_or(phase: TrainingPhase) -> TrainingPhase:
    """The preparation of rows while it runs in parallel; otherwise `phase`."""
    now = DOING.now
    return _this_process() if now.unit == ROWS and now.total is not None and now.done < now.total else phase
