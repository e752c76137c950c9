"""The progress display of `trainjob run`: live on a terminal, plain lines elsewhere."""

import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from trainjob.api.training_status import TrainingStatus
from trainjob.cli.output import console as new_console
from trainjob.cli.output import printable
from trainjob.cli.status_text import (
    begins_phase,
    ends_epoch,
    epochs_done,
    first_of,
    is_placed,
    position,
    speed,
    stage_text,
)
from trainjob.formatting import score
from trainjob.runs.history import beside_epoch

if TYPE_CHECKING:
    from rich.console import Console

SECONDS_BETWEEN_LINES = 10.0
"""The least seconds between two plain lines within an epoch or a phase."""


class Progress(Protocol):
    """Something that shows how a run goes."""

    def update(self, status: TrainingStatus) -> None:
        """Shows the newest snapshot; any thread may call it."""
        ...

    def show(self, line: str) -> None:
        """Shows a line that rank 0 has printed, above the redrawn part; any thread may call it."""
        ...


@contextmanager
def display(name: str, console: "Console | None" = None) -> Generator[Progress]:
    """Shows the progress of the run `name` for as long as the context lasts."""
    console = console or new_console()
    if not console.is_terminal or console.is_dumb_terminal or not console.encoding.startswith("utf"):
        yield PlainProgress(name, console)
        return
    from trainjob.cli.live import LiveProgress

    with LiveProgress(name, console) as progress:
        yield progress


@contextmanager
def preparing(name: str) -> Generator[None]:
    """Shows on standard error how the data of the TrainJob `name` is read in the block."""
    from trainjob.progress.snapshots import Snapshots

    with display(name, new_console(stderr=True)) as progress:
        snapshots = Snapshots(progress.update)
        snapshots.preparing(None)
        try:
            yield
        finally:
            snapshots.close()


class PlainProgress:
    """A line for each stage, phase and epoch and, within them, every ten seconds; no control characters."""

    def __init__(self, name: str, console: "Console") -> None:
        self._name, self._out = name, console.file
        self._shown: TrainingStatus | None = None
        self._next_line = 0.0
        self._last_line = ""
        self._lock = threading.Lock()

    def update(self, status: TrainingStatus) -> None:
        with self._lock:
            for line in self._lines(status, self._shown):
                if line != self._last_line:  # as where a phase begins again for the next set of rows
                    self._out.write(f"{printable(line)}\n")
                self._last_line = line
            self._out.flush()
            self._shown = status

    def show(self, line: str) -> None:
        from rich.text import Text

        with self._lock:
            self._out.write(f"{printable(Text.from_ansi(line).plain)}\n")
            self._out.flush()

    def _lines(self, status: TrainingStatus, shown: TrainingStatus | None) -> Iterator[str]:
        if shown is None or (status.stage, status.message) != (shown.stage, shown.message):
            yield f"{self._name}: {stage_text(status)}"
        if ends_epoch(status, shown):
            metrics = first_of([f"{name} {score(value)}" for name, value in beside_epoch(status.metrics).items()])
            best = ["(best so far)"] if status.is_best else []
            yield "  ".join([f"epoch {epochs_done(status)}:", *metrics, *best])
        elif is_placed(status) and (time.monotonic() >= self._next_line or begins_phase(status, shown)):
            yield "  ".join(position(status) + speed(status))
        else:
            return
        self._next_line = time.monotonic() + SECONDS_BETWEEN_LINES
