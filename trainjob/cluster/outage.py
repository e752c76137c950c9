"""An API server that is away for a while or, just after its start, refuses what it allows."""

import time
from datetime import UTC, datetime

from trainjob.cluster.errors import ClusterUnreachable, NotPermitted
from trainjob.errors import notify

PAUSE_SECONDS = 2.0
REFUSAL_SECONDS = 30.0
"""An API server that starts does not know yet who may do what, and refuses permitted requests for at most this long."""

PASSING = (ClusterUnreachable, NotPermitted)
"""Errors that pass, of a request that has been answered before."""


class Outage:
    """Bears the errors of a request that is repeated until it is answered."""

    def __init__(self) -> None:
        self._is_told = False
        self._refused: float | None = None

    def bear(self, error: ClusterUnreachable | NotPermitted) -> None:
        """Pauses, and notifies the user of the first error. Raises it if the API server has refused for too long."""
        now = time.monotonic()
        if isinstance(error, NotPermitted):
            self._refused = now if self._refused is None else self._refused
            if now - self._refused > REFUSAL_SECONDS:
                raise error
        else:
            self._refused = None
        if not self._is_told:
            notify(f"{datetime.now(UTC):%H:%M:%SZ}: {error}; trying again")
        self._is_told = True
        time.sleep(PAUSE_SECONDS)

    def end(self) -> None:
        """Call it after an answer: the next error begins another outage."""
        self._is_told, self._refused = False, None
