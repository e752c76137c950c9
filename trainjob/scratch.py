"""Temporary folders that do not accumulate: a later process removes the folders of killed processes."""

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
"""Names that `tempfile` makes from the prefix; folders with other names are never removed."""
YOUNG_SECONDS = 60
"""The owner of a folder younger than this may not have locked it yet."""
NO_ROOM_BYTES = 2**20


@contextmanager
def scratch_folder() -> Generator[Path]:
    """Creates an empty folder and removes it at the end of the block. `tempfile.TemporaryDirectory` would also remove
    it when the process exits, while a thread such as Ray Train's may still be writing to it.

    Raises StorageError if the disk is full.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    except OSError as error:
        raise StorageError(
            f"there is no folder for temporary files: {error.strerror}; set TMPDIR to one with free space"
        ) from None
    lock = _lock(folder)
    try:
        yield folder
    except Exception as error:
        if isinstance(error, UserError) or not _is_full(error, folder):
            raise
        raise StorageError(
            f"{folder.parent}: there is no space for temporary files; free some, or set TMPDIR to a folder with free "
            "space"
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
        except OSError:  # in use, just removed, or not readable
            continue
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _lock(folder: Path) -> int:
    """Locks a folder until the returned file descriptor is closed or the process ends."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise
    return file


def _is_full(error: Exception, folder: Path) -> bool:
    """Whether the disk is full; libraries report that in different ways."""
    return getattr(error, "errno", None) == errno.ENOSPC or shutil.disk_usage(folder.parent).free < NO_ROOM_BYTES
