"""Printing: names, texts and paths come from data and may contain control characters of terminals."""

import io
import os
import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from rich.console import Console

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


MAX_WIDTH = 10_000
"""Width of the output if it is not a terminal, in columns."""


def printable(text: str) -> str:
    """The text with control characters escaped as in Python (\x1b), except line breaks and tabs."""
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def printable_json(text: str) -> str:
    """JSON with all control characters escaped; the `json` module leaves those from U+007F on as they are."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def say(text: str, error: bool = False, color: str | None = None) -> None:
    """Prints a line to standard output or, with `error`, to standard error."""
    typer.secho(printable(text), fg=color, err=error)


class OutputError(OSError):
    """Standard output cannot be written."""


class _Output(io.BufferedWriter):
    """Not a raw stream: a signal between its write and its return would make the buffer above write once more."""

    def write(self, data: "ReadableBuffer") -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise OutputError(error.errno, error.strerror) from None

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            raise OutputError(error.errno, error.strerror) from None


def open_output() -> None:
    """Makes errors of standard output distinguishable from those of files. If it is closed, as by `>&-`, output is
    discarded."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - before another file gets its number
    elif isinstance(sys.stdout, io.TextIOWrapper):
        old = sys.stdout
        binary = _Output(io.FileIO(old.fileno(), "w", closefd=False))
        sys.stdout = io.TextIOWrapper(binary, old.encoding, old.errors, line_buffering=old.line_buffering)


def give_up_output() -> OutputError | None:
    """Flushes standard output. If that fails, discards the rest and returns the error."""
    try:
        sys.stdout.flush()
    except OutputError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return error
    return None


def console(**options: Any) -> "Console":
    """The console for tables and the live display; it passes only its own control characters. Lines into a pipe or a
    file are not wrapped, because programs read them."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class PrintableConsole(Console):
        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                is_text = segment.control is None
                yield Segment(printable(segment.text), segment.style) if is_text else segment

    found = PrintableConsole(**options)
    if not found.is_terminal and "COLUMNS" not in os.environ:
        found.width = MAX_WIDTH
    return found
