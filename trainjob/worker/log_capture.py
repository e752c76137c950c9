"""Captures the output of workers in log files of limited size in the run's folder, and sends rank 0's to the driver."""

import codecs
import os
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from trainjob.errors import UserError
from trainjob.progress.channel import Address, Sender
from trainjob.runs.files import LOGS
from trainjob.runs.folder import check_exists
from trainjob.runs.logs import PARTS, attempt_folder, log_name
from trainjob.scratch import scratch_folder
from trainjob.storage import Folder

FILE_BYTES = 8 * 2**20
"""When a file reaches this size, the next poll starts another."""
POLL_SECONDS = 0.2
UPLOAD_SECONDS = 10.0
SHOWN_BYTES = 32 * 2**10
"""Most bytes sent to the driver per poll."""


@dataclass(frozen=True)
class LogTarget:
    """The folder and attempt that a worker writes its logs to. Picklable."""

    run: Folder
    attempt: int
    driver: Address | None = None
    """The driver, which shows rank 0's output."""

    @property
    def folder(self) -> Folder:
        return attempt_folder(self.run, self.attempt)


@contextmanager
def captured(output: LogTarget, rank: int) -> Generator[None]:
    """Redirects standard output and error of this process and its children to `rank-N.log` in the attempt's folder,
    during the block. On object storage the file is uploaded every few seconds and at the end.

    Raises UserError if the run's folder is gone.
    """
    check_exists(output.run)
    with scratch_folder() as scratch:
        sender = Sender(output.driver) if output.driver is not None and rank == 0 else None
        lines = LineReader(sender.send_output) if sender is not None else None
        log = _RotatingLog(output.folder, scratch, rank, lines)
        try:
            with _redirected(log.file), log.followed():
                yield
        finally:
            log.finish()
            if sender is not None:
                sender.close()


class LineReader:
    """Splits chunks of output into lines. If a progress bar has redrawn a line, its last state is shown."""

    def __init__(self, show: Callable[[str], None]) -> None:
        """`show` is called with a line, or with several joined by newlines."""
        self._show, self._rest = show, ""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def skip(self, count: int) -> None:
        self.finish()
        self._show(f"[trainjob: {count:,} bytes are not shown here, see {LOGS} in the run's folder]")

    def add(self, data: bytes) -> None:
        *lines, rest = (self._rest + self._decoder.decode(data)).split("\n")
        if lines:
            self._show("\n".join(map(_as_drawn, lines)))
        self._rest = _as_drawn(rest)[-SHOWN_BYTES:]

    def finish(self) -> None:
        if self._rest:
            self._show(self._rest)
        self._rest = ""


def _as_drawn(line: str) -> str:
    return next((part for part in reversed(line.split("\r")) if part), "")


@contextmanager
def _redirected(file: FileIO) -> Generator[None]:
    """Redirects file descriptors 1 and 2 to `file`. Replaces Python's standard output by one that is written at the end
    of each line: `print` would flush that of Ray's workers twice a line."""
    _flush()
    before = os.dup(1), os.dup(2)
    _write_to(file)
    lines = os.fdopen(1, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
    try:
        with redirect_stdout(lines):
            try:
                yield
            finally:
                _flush()
    finally:
        with suppress(OSError, ValueError):
            lines.flush()  # the user's code may have replaced sys.stdout
        for number, saved in enumerate(before, 1):
            os.dup2(saved, number)
            os.close(saved)


def _write_to(file: FileIO) -> None:
    os.dup2(file.fileno(), 1)
    os.dup2(file.fileno(), 2)


def _flush() -> None:
    with suppress(OSError, ValueError):  # the user's code may have closed it
        sys.stdout.flush()
        sys.stderr.flush()


class _RotatingLog:
    """The rotating log of one rank: `rank-N.log` holds the beginning. Once it is full, `rank-N.last.log` holds the
    latest output, and `rank-N.before-last.log` the output before that."""

    def __init__(self, folder: Folder, scratch: Path, rank: int, lines: LineReader | None) -> None:
        self._remote = folder if "://" in folder.uri else None
        self._folder = scratch if self._remote is not None else Path(folder.uri)
        self._folder.mkdir(parents=True, exist_ok=True)
        names = (log_name(rank, part) for part in PARTS)
        self._first, self._last, self._before = (self._folder / name for name in names)
        self._fetch_earlier()
        self._uploaded: dict[Path, tuple[int, int]] = self._state()
        self._uploaded_at = time.monotonic()
        self._lines = lines
        self._notes: set[str] = set()
        self._ended = threading.Event()
        self.file = self._open(self._first)
        self._position = os.fstat(self.file.fileno()).st_size

    @contextmanager
    def followed(self) -> Generator[None]:
        """Sends and rotates the log in a thread, which owns file descriptors 1 and 2 during the block."""
        thread = threading.Thread(target=self._follow, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def finish(self) -> None:
        """Sends the rest, and removes empty files from the run's folder."""
        with suppress(OSError, UserError):
            self._send_new()
            if self._lines is not None:
                self._lines.finish()
            self._upload()
        self.file.close()
        if self._remote is not None:
            return
        with suppress(OSError):  # other ranks may have logs here
            if self._first.stat().st_size == 0:
                self._first.unlink()
                self._folder.rmdir()
                self._folder.parent.rmdir()

    def _follow(self) -> None:
        while not self._ended.wait(POLL_SECONDS):
            with suppress(OSError, UserError):  # a folder that is gone, or a server that is away, ends no training
                self._send_new()
                if self._position >= FILE_BYTES:
                    self._rotate()
                if time.monotonic() - self._uploaded_at >= UPLOAD_SECONDS:
                    self._upload()

    def _send_new(self) -> None:
        """Sends the bytes that were written since the last poll."""
        size = os.fstat(self.file.fileno()).st_size
        if self._lines is not None and size > self._position:
            start = max(self._position, size - SHOWN_BYTES)
            if start > self._position:
                self._lines.skip(start - self._position)
            self._lines.add(os.pread(self.file.fileno(), size - start, start))
        self._position = size

    def _rotate(self) -> None:
        """Starts an empty file."""
        if not self._last.exists():
            self._note(f"continues in {self._last.name}")
        else:
            if self._before.exists():
                self._note(f"the lines between {self._before.name} and this file were too many to keep")
            self._last.replace(self._before)
        full, self.file = self.file, self._open(self._last)
        _write_to(self.file)
        new, self.file = self.file, full
        self._send_new()  # written since the poll
        full.close()
        self.file, self._position = new, 0

    def _note(self, text: str) -> None:
        """Adds a note to the end of the first file, once for each text."""
        if text not in self._notes:
            with self._first.open("a") as file:
                file.write(f"\n[trainjob: {text}]\n")
        self._notes.add(text)

    def _open(self, path: Path) -> FileIO:
        return FileIO(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644), "r+")

    def _fetch_earlier(self) -> None:
        """Downloads the log that this rank wrote in the same attempt, before its workers were restarted."""
        if self._remote is None:
            return
        names = self._remote.list()
        for path in (self._first, self._last, self._before):
            if path.name in names:
                self._remote.download(path.name, path)

    def _upload(self) -> None:
        if self._remote is None:
            return
        state = self._state()
        for path, found in state.items():
            if self._uploaded.get(path) != found and found[0] > 0:
                self._remote.upload(path, path.name)
        self._uploaded, self._uploaded_at = state, time.monotonic()

    def _state(self) -> dict[Path, tuple[int, int]]:
        """Size and modification time of each file."""
        files = [path for path in (self._first, self._last, self._before) if path.exists()]
        return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in files}
