"""The live display of a run: a line for each finished epoch, and the current state below."""

import threading
import time
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from trainjob.api.training_status import TrainingStatus
from trainjob.cli.status_text import (
    MAX_METRICS,
    clock,
    ends_epoch,
    epochs_done,
    measured_phase,
    position,
    speed,
    stage_text,
)
from trainjob.formatting import score
from trainjob.runs.history import beside_epoch

REFRESHES_PER_SECOND = 8
GAP = 2
"""Blanks between two columns of the epochs' table."""


class LiveProgress:
    """Redraws the newest snapshot in place, below the lines of finished epochs."""

    def __init__(self, name: str, console: Console) -> None:
        self._name, self._console = name, console
        self._status: TrainingStatus | None = None
        self._columns: list[str] = []
        self._start = time.monotonic()
        self._spinner = Spinner("dots", style="cyan")
        self._lock = threading.Lock()
        self._live = Live(
            console=console, get_renderable=self._render, refresh_per_second=REFRESHES_PER_SECOND, transient=True
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def update(self, status: TrainingStatus) -> None:
        with self._lock:
            if ends_epoch(status, self._status):
                self._print_epoch(status)
            self._status = status

    def show(self, line: str) -> None:
        with self._lock:
            self._console.print(Text.from_ansi(line), soft_wrap=True)

    def _print_epoch(self, status: TrainingStatus) -> None:
        ranked = status.best_checkpoint.metric if status.best_checkpoint else None
        columns = metrics_that_fit(list(beside_epoch(status.metrics))[:MAX_METRICS], ranked, self._console.width)
        if columns != self._columns:
            self._columns = columns
            for line in header(columns):
                self._console.print(Text(line, style="bold"), no_wrap=True, crop=True)
        self._console.print(Text(epoch_line(status, columns)), no_wrap=True, crop=True)

    def _render(self) -> RenderableType:
        return frame(self._name, self._status or TrainingStatus(), time.monotonic() - self._start, self._spinner)


def frame(name: str, status: TrainingStatus, elapsed: float, spinner: RenderableType) -> RenderableType:
    """The redrawn part: the current stage, the progress bar, position and speed."""
    top = Table.grid(expand=True, padding=(0, 1))
    top.add_column(width=1)
    top.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    top.add_column(justify="right", no_wrap=True)
    top.add_row(
        spinner, Text.assemble((name, "bold"), "  ", (stage_text(status), "cyan")), Text(clock(elapsed), style="dim")
    )
    phase = measured_phase(status)
    if not status.step and phase is None:
        return top
    training = status.stage == "Training"
    done, total = (status.step, status.steps) if phase is None else (phase.done, phase.total)
    below = Table.grid(expand=True)
    below.add_column(no_wrap=True, overflow="ellipsis")
    pulses = total is None and (training or phase is not None)
    below.add_row(ProgressBar(total=total, completed=done, pulse=pulses))
    below.add_row("   ".join(position(status)))
    if training and phase is None:
        below.add_row("   ".join(speed(status)))
    return Group(top, Padding(below, (0, 0, 0, 2)))


def header(columns: list[str]) -> list[str]:
    """The lines above the epochs' table; `validation_` is said once, over the first column that it is in."""
    names = "".join(f"{_short(name):>{_width(name) + GAP}}" for name in columns)
    group, at = "", 7
    for name in columns:
        if name != _short(name) and not group:
            group = " " * (at + GAP) + "validation"
        at += _width(name) + GAP
    return [*([group] if group else []), f"{'epoch':>7}{names}"]


def epoch_line(status: TrainingStatus, columns: list[str]) -> str:
    metrics = beside_epoch(status.metrics)
    cells = "".join(f"{score(metrics[name]):>{_width(name) + GAP}}" for name in columns)
    return f"{epochs_done(status):>7}{cells}" + ("  ★ best so far" if status.is_best else "")


def metrics_that_fit(names: list[str], ranked: str | None, width: int) -> list[str]:
    """The first metrics that fit into `width`; always includes the one that ranks checkpoints."""
    columns = list(names)
    while len(columns) > 1 and 7 + sum(_width(name) + GAP for name in columns) + len("  ★ best so far") > width:
        columns.remove(next(name for name in reversed(columns) if name != ranked))
    return columns


def _short(name: str) -> str:
    return name.removeprefix("validation_")


def _width(name: str) -> int:
    return max(len(_short(name)), 7)
