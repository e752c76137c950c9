"""Which phases take long enough to be told, and when they will be over."""

import time

from trainjob.api.training_status import Phase

SECONDS_UNTOLD = 3.0
"""A phase that is over by then is not told."""
SECONDS = "s"
"""The unit of a phase of which nothing but its seconds can be counted."""


class PhaseClock:
    """Measures one phase after another."""

    def __init__(self) -> None:
        self._name = ""
        self._since, self._first, self._moved = 0.0, 0, 0.0

    def told(self, phase: Phase) -> tuple[Phase, float | None] | None:
        """What to tell of a phase, and the seconds that it has to go at its pace since it began to move, where they
        can be known; None before it has gone on for some seconds. Where nothing is counted, its seconds are."""
        if phase.name != self._name or phase.done < self._first:
            self._name, self._since, self._first = phase.name, time.monotonic(), phase.done
        elapsed = time.monotonic() - self._since
        if phase.done == self._first:
            self._moved = time.monotonic()
        if elapsed < SECONDS_UNTOLD:
            return None
        if phase.total is None and not phase.done:
            return Phase(name=phase.name, done=int(elapsed), unit=SECONDS), None
        done = phase.done - self._first
        eta = None
        if phase.total is not None and done > 0:
            eta = (time.monotonic() - self._moved) / done * (phase.total - phase.done)
        return phase, eta
