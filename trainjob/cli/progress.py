"""The progress display of `trainjob run`: live on a terminal, plain lines elsewhere."""

import math
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from trainjob.api.training_status import TrainingPhase, TrainingStatus
from trainjob.cli.output import console as new_console
from trainjob.cli.output import printable
from trainjob.doing import BYTES
from trainjob.formatting import done, score
from trainjob.progress.phases import SECONDS
from trainjob.runs.history import beside_epoch

if TYPE_CHECKING:
    from rich.console import Console

SECONDS_BETWEEN_LINES = 10.0
"""The least seconds between two plain lines within an epoch or a phase."""
MAX_METRICS = 20
"""The most metrics on a line; the others are counted."""


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


def ends_epoch(status: TrainingStatus, shown: TrainingStatus | None) -> bool:
    """Whether an epoch has ended since the snapshot `shown`."""
    return status.epochs_completed > 0 and (shown is None or status.epochs_completed != shown.epochs_completed)


def begins_phase(status: TrainingStatus, shown: TrainingStatus | None) -> bool:
    """Whether another phase has begun since the snapshot `shown`."""
    phase, before = measured_phase(status), None if shown is None else measured_phase(shown)
    return phase is not None and (before is None or before.name != phase.name)


def first_of(texts: list[str], most: int = MAX_METRICS) -> list[str]:
    """The first texts, `most` of them, and the number of the others."""
    more = [f"and {len(texts) - most:,} more"] if len(texts) > most else []
    return texts[:most] + more


def stage_text(status: TrainingStatus) -> str:
    return f"{status.stage.lower()}, {status.message}" if status.message else status.stage.lower()


def epochs_done(status: TrainingStatus) -> str:
    return _of(status.epochs_completed, status.epochs) if status.epochs else _reported_epoch(status)


def _reported_epoch(status: TrainingStatus) -> str:
    """The epoch of a function, which may report fractions."""
    epoch = status.metrics.get("epoch", status.epoch)
    return f"{epoch:,.6g}" if isinstance(epoch, float) and math.isfinite(epoch) else f"{status.epoch:,}"


def is_placed(status: TrainingStatus) -> bool:
    """Whether the progress of training, or of a phase beside it, is known."""
    return status.phase is not None or _trains(status)


def measured_phase(status: TrainingStatus) -> TrainingPhase | None:
    """The phase to show instead of steps. During training, a phase in seconds is shown beside the steps: None."""
    phase = status.phase
    return None if phase is not None and phase.unit == SECONDS and _trains(status) else phase


def _trains(status: TrainingStatus) -> bool:
    return status.stage == "Training" and status.step > 0


def _phase_position(status: TrainingStatus, phase: TrainingPhase) -> list[str]:
    if phase.unit == SECONDS:
        return [f"{phase.name}, {clock(phase.done)}"]
    facts = [f"{phase.name} {_amount(phase)}"]
    if phase.total:
        facts.append(f"{done(100 * phase.done / phase.total)}%")
    if status.eta is not None:
        facts.append(f"{clock(status.eta)} to go")
    return facts


def position(status: TrainingStatus) -> list[str]:
    """The position of the run: its phase, or epoch and step, and the remaining time, as far as known; a function has
    reports instead of steps."""
    phase = measured_phase(status)
    if phase is not None:
        return _phase_position(status, phase)
    silence = [f"{status.phase.name}: {clock(status.phase.done)}"] if status.phase is not None else []
    if not status.epochs:
        return [f"epoch {_reported_epoch(status)}", f"report {status.step:,}", *silence]
    facts = [f"epoch {_of(status.epoch, status.epochs)}", f"step {_of(status.step, status.steps)}"]
    if status.steps:
        facts.append(f"{done(100 * status.step / status.steps)}%")
    if status.eta is not None:
        facts.append(f"{clock(status.eta)} to go")
    return facts + silence


def speed(status: TrainingStatus) -> list[str]:
    """The speed of training: loss, learning rate, samples and tokens per second and padding, as far as known."""
    facts: list[str] = []
    if measured_phase(status) is not None:
        return facts
    if status.loss is not None:
        facts.append(f"loss {score(status.loss)}")
    if status.learning_rate is not None:
        facts.append(f"learning rate {status.learning_rate:.3g}")
    if status.samples_per_second is not None:
        facts.append(f"{status.samples_per_second:,.0f} samples/s")
    if status.tokens_per_second is not None:
        facts.append(f"{status.tokens_per_second:,.0f} tokens/s")
    if status.padding is not None:
        facts.append(f"{status.padding:.0%} padding")
    return facts


def clock(seconds: float) -> str:
    """Seconds as h:mm:ss, after the days if there are any."""
    days, rest = divmod(round(seconds), 86400)
    before = f"{days:,} day{'s' if days > 1 else ''}, " if days > 0 else ""
    return f"{before}{timedelta(seconds=rest)}"


def _amount(phase: TrainingPhase) -> str:
    if phase.unit == BYTES:
        return f"{phase.done / 1e6:,.1f}" + (f"/{phase.total / 1e6:,.1f} MB" if phase.total else " MB")
    return f"{_of(phase.done, phase.total)} {phase.unit}".rstrip()


def _of(done: int, total: int | None) -> str:
    return f"{done:,}/{total:,}" if total else f"{done:,}"
