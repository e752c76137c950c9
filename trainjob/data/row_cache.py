"""A cache of prepared rows, so that the next pass over the same rows does not prepare them again."""

from collections.abc import Generator, Hashable
from contextlib import contextmanager
from threading import Lock
from typing import Any

USUAL_BYTES = 16 * 2**20
ENTRY_BYTES = 500
"""Memory of an entry besides its value."""


class RowCache:
    """Values by key, up to a number of bytes; the oldest are evicted first. Thread-safe."""

    def __init__(self) -> None:
        self._most, self._bytes, self._lock = USUAL_BYTES, 0, Lock()
        self._values: dict[Hashable, tuple[Any, int]] = {}

    def __len__(self) -> int:
        return len(self._values)

    @contextmanager
    def room(self, most: int) -> Generator[None]:
        """Empties the cache, and lets it hold up to `most` bytes within the block. It is emptied again at the end."""
        self._most, self._bytes, self._values = most, 0, {}
        try:
            yield
        finally:
            self._most, self._bytes, self._values = USUAL_BYTES, 0, {}

    def put(self, key: Hashable, value: Any, size: int) -> None:
        """Adds a value of `size` bytes."""
        with self._lock:
            self._drop(key)
            self._values[key] = value, size + ENTRY_BYTES
            self._bytes += size + ENTRY_BYTES
            while self._bytes > self._most:
                self._drop(next(iter(self._values)))

    def get(self, key: Hashable) -> Any:
        """The value; None if there is none."""
        found = self._values.get(key)
        return None if found is None else found[0]

    def take(self, key: Hashable) -> Any:
        """Removes the value and returns it; None if there is none."""
        with self._lock:
            return self._drop(key)

    def _drop(self, key: Hashable) -> Any:
        value, size = self._values.pop(key, (None, 0))
        self._bytes -= size
        return value


ROW_CACHE = RowCache()
