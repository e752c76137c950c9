"""Progress of this process's work besides training steps, for the display of long phases."""

from threading import Lock
from typing import NamedTuple

BYTES, ROWS = "bytes", "rows"
"""Units in which reading is counted."""


class Work(NamedTuple):
    """One piece of work."""

    name: str = ""
    done: int = 0
    total: int | None = None
    """None if unknown."""
    unit: str = ""


class Doing:
    """Holds the current work of this process. Thread-safe."""

    def __init__(self) -> None:
        self.now, self._lock = Work(), Lock()

    def begin(self, name: str, total: int | None = None, unit: str = "") -> None:
        """Starts a new piece of work. Without a unit it is not counted."""
        self.now = Work(name, 0, total, unit)

    def add(self, count: int) -> None:
        """Adds to the amount done."""
        with self._lock:
            self.now = self.now._replace(done=self.now.done + count)

    def reach(self, done: int) -> None:
        """Raises the amount done to at least `done`."""
        with self._lock:
            self.now = self.now._replace(done=max(self.now.done, done))


DOING = Doing()
