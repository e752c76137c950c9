"""Which phases take long enough to be told, and when they will be over."""

import time

from trainjob.api.training_status import Phase

SECONDS_UNTOLD = 3.0
"""A phase that is over by then is not told."""


class PhaseClock:
    """Measures one phase after another."""

    def __init__(self) -> None:
        self._name = ""
        self._since, self._first = 0.0, 0

    def is_long(self, phase: Phase) -> bool:
        """Whether the phase has gone on for some seconds since the first call for it."""
        if phase.name != self._name or phase.done < self._first:
            self._name, self._since, self._first = phase.name, time.monotonic(), phase.done
        return time.monotonic() - self._since >= SECONDS_UNTOLD

    def eta(self, phase: Phase) -> float | None:
        """Seconds to go, at the pace since the first call; None where it cannot be known."""
        done = phase.done - self._first
        if phase.total is None or done <= 0:
            return None
        return (time.monotonic() - self._since) / done * (phase.total - phase.done)
