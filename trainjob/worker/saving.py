"""Saving while training goes on: one checkpoint at a time, on a thread of its own."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from trainjob.runs.checkpoints import CheckpointStore


class Saver:
    """Saves checkpoints to `store` in the background; the block ends once the last one is saved.

    Every rank begins the same ones. What goes wrong is raised by whichever method is called next.
    """

    def __init__(self, store: CheckpointStore, on_saved: Callable[[str, int, dict[str, float]], None]) -> None:
        """`on_saved` is called, in the thread that calls these methods, with name, step and metrics."""
        self._store, self._on_saved = store, on_saved
        self._thread = ThreadPoolExecutor(1, "checkpoint")
        self._saving: tuple[Future[str], int, dict[str, float]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(*(() if error is None else (Exception,))):  # the first error is told
            self.join()

    def begin(self, epoch: int, step: int, metrics: dict[str, float], write: Callable[[Path], None]) -> None:
        """Saves what `write` puts into a folder, once the checkpoint before it is saved."""
        self.join()
        self._saving = self._thread.submit(self._store.save, epoch, step, metrics, write), step, metrics

    def look(self) -> None:
        """Takes note of a checkpoint that is saved by now."""
        if self._saving is not None and self._saving[0].done():
            self.join()

    def join(self) -> None:
        """Waits for the checkpoint that is being saved."""
        if self._saving is not None:
            (future, step, metrics), self._saving = self._saving, None
            self._on_saved(future.result(), step, metrics)
