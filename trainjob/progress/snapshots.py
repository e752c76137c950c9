"""What the driver tells of the run as a whole: the workers' snapshots and, at the end, how it ended."""

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from trainjob.api.training_status import Phase, TrainingStatus
from trainjob.doing import DOING, ROWS
from trainjob.progress.phases import SECONDS, SECONDS_UNTOLD, PhaseClock
from trainjob.runs.trials import TrialSteps

SECONDS_BETWEEN_COUNTS = 1.0

OnStatus = Callable[[TrainingStatus], None]
CurrentPhase = Callable[[], Phase]


class Snapshots:
    """Passes snapshots on, whatever thread they come from, and nothing after the last one. Every second, it also tells
    how far work has come that takes long, and how long nothing has been heard of the workers."""

    def __init__(self, on_status: OnStatus, workers: int = 1) -> None:
        """`workers`: how many are started."""
        self._on_status, self._workers = on_status, workers
        self._last = TrainingStatus()
        """What is known, without the phase that the driver adds to it."""
        self._work: CurrentPhase | None = None
        """What goes on beside training steps; None while the workers tell it."""
        self._trials: CurrentPhase | None = None
        self._heard = time.monotonic()
        self._watching, self._ended = False, threading.Event()
        self._clock = PhaseClock()
        self._lock = threading.Lock()
        self.trial: Callable[[TrialSteps], None] = lambda _: None
        """Is told how far each trial of a search has come."""

    def add(self, status: TrainingStatus) -> None:
        """Passes on a snapshot of the workers."""
        if status.stage == "Starting":  # they know less than what the run has come to before
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
        """The driver prepares the data."""
        self.working(_this_process)
        self._add(lambda _: TrainingStatus(stage="Preparing", percent=percent))

    def starting(self, message: str = "") -> None:
        """The workers start."""
        workers = f"{self._workers} workers" if self._workers > 1 else "the worker"
        self.working(partial(_rows_or, Phase(name=f"starting {workers}")))
        self._add(
            lambda last: last.model_copy(update={"stage": "Starting", "message": message, "eta": None, "phase": None})
        )

    def restarting(self, failure: Exception) -> None:
        """The workers start again after a failure."""
        self.starting(f"{failure}; starting again")

    def search(self, trials: CurrentPhase) -> None:
        """A search begins, whose trials have come as far as `trials` says; until workers start again."""
        self._trials = trials
        self.working(trials)

    def finishing(self) -> None:
        """The workers have ended, and the driver does the rest."""
        self.working(_this_process)
        self._add(lambda last: last.model_copy(update={"eta": None, "phase": None}))

    def comparing(self) -> None:
        """The baselines are computed."""
        self.working(_this_process)
        self._add(lambda last: last.model_copy(update={"message": "compares with the baselines", "eta": None}))

    def working(self, work: CurrentPhase) -> None:
        """From now on, this is what goes on; of what is not counted, the seconds are told."""
        self._work = work
        if not self._watching:
            self._watching = True
            threading.Thread(target=self._watch, daemon=True).start()

    def take_up(self, reached: TrainingStatus) -> None:
        """Starts from what an earlier attempt has come to."""
        with self._lock:
            self._last = reached

    def end(self, **changes: Any) -> None:
        """Passes on the last snapshot: what is known, with these fields besides."""
        with self._lock:
            self._ended.set()
            self._on_status(self._last.model_copy(update=changes))

    def close(self) -> None:
        """Nothing more is passed on."""
        self._ended.set()

    def _watch(self) -> None:
        while not self._ended.wait(SECONDS_BETWEEN_COUNTS):
            work = self._work
            told = self._silence() if work is None else self._clock.told(work())
            if told is None:
                continue
            phase, eta = told
            with self._lock:
                if not self._ended.is_set():
                    self._on_status(self._last.model_copy(update={"phase": phase, "eta": eta}))

    def _silence(self) -> tuple[Phase, float | None] | None:
        """How long the workers have told nothing; training has to go as long as they said, as far as is known."""
        seconds, last = time.monotonic() - self._heard, self._last
        if seconds < SECONDS_UNTOLD or last.phase is not None:
            return None
        if last.stage == "Training":
            unit = "report" if last.steps is None else "step"
            name = f"since {unit} {last.step:,}" if last.step else f"first {unit}"
        else:
            name = "working"
        return Phase(name=name, done=int(seconds), unit=SECONDS), last.eta

    def _add(self, follow: Callable[[TrainingStatus], TrainingStatus]) -> None:
        with self._lock:
            if not self._ended.is_set():
                self._last, self._heard = follow(self._last), time.monotonic()
                self._on_status(self._last)


def _after(last: TrainingStatus, status: TrainingStatus) -> TrainingStatus:
    """A snapshot of the workers with what they do not know of a search."""
    if last.tuning is None and status.tuning is None:
        return status
    percent = max(last.percent or 0.0, status.percent or 0.0)  # the best trial's is scored once more
    return status.model_copy(update={"tuning": status.tuning or last.tuning, "percent": percent})


def _this_process() -> Phase:
    now = DOING.now
    return Phase(
        name=now.name or "preparing", done=now.done, total=now.total and max(now.total, now.done), unit=now.unit
    )


def _rows_or(phase: Phase) -> Phase:
    """The rows that are being prepared while workers start; the phase, once all are."""
    now = DOING.now
    return _this_process() if now.unit == ROWS and now.total is not None and now.done < now.total else phase
