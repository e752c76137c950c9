"""Temporary folders that do not pile up: what a killed process left is removed by a later one."""

import errno
import fcntl
import os
import re
import shutil
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from trainjob.errors import StorageError, UserError

PREFIX = "trainjob-scratch-"
_NAME = re.compile(rf"{PREFIX}[a-z0-9_]{{8}}")
"""What `tempfile` makes of the prefix: no folder of any other name is ever removed."""
YOUNG_SECONDS = 60
"""A folder younger than this may have an owner that has yet to lock it."""
NO_ROOM_BYTES = 2**20


@contextmanager
def scratch_folder() -> Generator[Path]:
    """An empty folder that is removed at the end of the block, but not before: `tempfile.TemporaryDirectory` is also
    removed when the process ends, while a thread such as Ray Train's may still be writing to it.

    Raises StorageError where the disk is full.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    except OSError as error:
        raise StorageError(f"no folder for temporary files: {error.strerror}; set TMPDIR to one with room") from None
    lock = _lock(folder)
    try:
        yield folder
    except Exception as error:
        if isinstance(error, UserError) or not _is_full(error, folder):
            raise
        raise StorageError(
            f"{folder.parent}: there is no room for temporary files; free some, or set TMPDIR to a folder with room"
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def sweep() -> None:
    """Removes the scratch folders of processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            if not _NAME.fullmatch(folder.name):
                continue
            if folder.stat().st_uid != os.getuid() or time.time() - folder.stat().st_mtime < YOUNG_SECONDS:
                continue
            lock = _lock(folder)
        except OSError:  # in use, just gone, or not to be opened
            continue
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _lock(folder: Path) -> int:
    """Held by the open file that is returned until it is closed, at the latest when the process ends."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise
    return file


def _is_full(error: Exception, folder: Path) -> bool:
    """Libraries tell a full disk in ways of their own."""
    return getattr(error, "errno", None) == errno.ENOSPC or shutil.disk_usage(folder.parent).free < NO_ROOM_BYTES
