"""Decides which phases last long enough to be shown, and estimates when they end."""

import time

from trainjob.api.training_status import TrainingPhase

SILENT_SECONDS = 3.0
"""Phases that end within this time are not shown."""
SECONDS = "s"
"""The unit of phases that can only be measured in time."""


class PhaseClock:
    """Measures one phase after another."""

    def __init__(self) -> None:
        self._name = ""
        self._since, self._first, self._moved = 0.0, 0, 0.0

    def observe(self, phase: TrainingPhase) -> tuple[TrainingPhase, float | None] | None:
        """The phase to show and its remaining seconds, if they can be estimated from its pace; None during its first
        seconds. A phase that counts nothing shows its elapsed seconds."""
        if phase.name != self._name or phase.done < self._first:
            self._name, self._since, self._first = phase.name, time.monotonic(), phase.done
        elapsed = time.monotonic() - self._since
        if phase.done == self._first:
            self._moved = time.monotonic()
        if elapsed < SILENT_SECONDS:
            return None
        if phase.total is None and not phase.done:
            return TrainingPhase(name=phase.name, done=int(elapsed), unit=SECONDS), None
        done = phase.done - self._first
        eta = None
        if phase.total is not None and done > 0:
            eta = (time.monotonic() - self._moved) / done * (phase.total - phase.done)
        return phase, eta
