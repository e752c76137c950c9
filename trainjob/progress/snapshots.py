"""What the driver tells of the run as a whole: the workers' snapshots and, at the end, how it ended."""

import threading
from collections.abc import Callable
from typing import Any

from trainjob.api.training_status import TrainingStatus

OnStatus = Callable[[TrainingStatus], None]


class Snapshots:
    """Passes snapshots on, whatever thread they come from, and nothing after the last one."""

    def __init__(self, on_status: OnStatus) -> None:
        self._on_status = on_status
        self._last = TrainingStatus()
        self._ended = False
        self._lock = threading.Lock()

    def add(self, status: TrainingStatus) -> None:
        """Passes on a snapshot; where the workers start, with what the run has come to before."""
        with self._lock:
            if self._ended:
                return
            if status.stage == "Starting":
                status = self._last.model_copy(update={"stage": status.stage, "message": status.message, "eta": None})
            self._pass_on(status)

    def take_up(self, reached: TrainingStatus) -> None:
        """Starts from what an earlier attempt has come to."""
        with self._lock:
            self._last = reached

    def end(self, **changes: Any) -> None:
        """Passes on the last snapshot: what is known, with these fields besides."""
        with self._lock:
            self._ended = True
            self._pass_on(self._last.model_copy(update=changes))

    def _pass_on(self, status: TrainingStatus) -> None:
        self._last = status
        self._on_status(status)
