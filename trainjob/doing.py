"""What this process does besides training and how far it has come, for the display of long work."""

from threading import Lock
from typing import NamedTuple

BYTES, ROWS = "bytes", "rows"
"""Units in which reading is counted."""


class Work(NamedTuple):
    """One piece of work."""

    name: str = ""
    done: int = 0
    total: int | None = None
    """None where it is not known."""
    unit: str = ""


class Doing:
    """Holds the work of this process, for any thread."""

    def __init__(self) -> None:
        self.now, self._lock = Work(), Lock()

    def begin(self, name: str, total: int | None = None, unit: str = "") -> None:
        """Other work begins, of which nothing is done yet. Without a unit it is not counted."""
        self.now = Work(name, 0, total, unit)

    def add(self, count: int) -> None:
        """So much more is done."""
        with self._lock:
            self.now = self.now._replace(done=self.now.done + count)

    def reach(self, done: int) -> None:
        """At least so much is done in all."""
        with self._lock:
            self.now = self.now._replace(done=max(self.now.done, done))


DOING = Doing()
