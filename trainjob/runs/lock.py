"""The lock of a run's folder on local disk, which names the process that holds it."""

import fcntl
import os
import signal
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from trainjob.errors import TransientError, UserError
from trainjob.runs.files import ATTEMPTS, LOCK
from trainjob.runs.refusals import not_a_run
from trainjob.storage import Folder, storage_errors


@contextmanager
def locked(run: Folder) -> Generator[None]:
    """Locks the run's folder, if it is on local disk. The lock ends with the process at the latest.

    Raises UserError if the folder is not a run's, and TransientError if another process holds the lock.
    """
    _refuse_foreign_folder(run)
    if "://" in run.uri:
        yield
        return
    with file_lock(Path(run.uri)):
        yield


@contextmanager
def file_lock(folder: Path) -> Generator[None]:
    """Locks a local folder, which is created if needed. Raises TransientError if another process holds the lock."""
    with storage_errors(str(folder)):
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK).open("a+")
    with lock as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise TransientError(
                f"{folder}: another process is running it or copying it; wait until that ends, or stop it"
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()} {socket.gethostname()}\n")
        file.flush()
        yield


def holder(run: Folder) -> str | None:
    """The process that holds the lock, as `PID HOST`; empty if an earlier version wrote the file. None if no process
    holds it, and in object storage, where there is no lock."""
    if "://" in run.uri or not run.exists(LOCK):
        return None
    with storage_errors(run.uri), (Path(run.uri) / LOCK).open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return file.read().strip()
    return None


def stop_holder(run: Folder) -> int:
    """Ends the process that holds the lock, as Ctrl-C does. Returns its process ID. Raises UserError if no process of
    this machine holds it."""
    found = holder(run)
    if found is None:
        raise UserError(f"{run.uri}: no process is running it")
    pid, _, host = found.partition(" ")
    if host != socket.gethostname() or not pid.isdecimal():
        raise UserError(f"{run.uri}: a process on {host or 'another machine'} is running it; stop it there")
    os.kill(int(pid), signal.SIGTERM)  # SIGINT is ignored by a process that a script has started in the background
    return int(pid)


def _refuse_foreign_folder(run: Folder) -> None:
    names = [name for name in run.list() if not name.startswith(".")]
    if names and not run.exists(ATTEMPTS):
        raise UserError(
            f"{not_a_run(run, ATTEMPTS)}. Nothing was touched: choose another metadata.name or spec.storage.uri"
        )
