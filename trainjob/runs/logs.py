"""Finds and reads the logs of workers in a run's folder."""

import re
from collections.abc import Mapping

from trainjob.errors import UserError
from trainjob.runs.files import LOGS
from trainjob.storage import Folder

PARTS = ("", "last.", "before-last.")
"""Middle parts of the file names of one log; worker/log_capture.py says when each is written."""
_SKIPPED = b"\n[trainjob: some lines were not kept]\n"

Sizes = Mapping[str, tuple[int, str]]


def log_name(rank: int, part: str = "") -> str:
    return f"rank-{rank}.{part}log"


def attempts_with_logs(run: Folder) -> list[int]:
    """Numbers of the attempts whose workers have printed something."""
    return sorted(int(name[8:]) for name in run.list(LOGS) if re.fullmatch(r"attempt-\d+", name))


def attempt_folder(run: Folder, attempt: int) -> Folder:
    return run / LOGS / f"attempt-{attempt}"


def latest_log(run: Folder, rank: int) -> str | None:
    """URI of a rank's log of its latest attempt, or None if it printed nothing."""
    for attempt in reversed(attempts_with_logs(run)):
        folder = attempt_folder(run, attempt)
        if log_name(rank) in folder.list():
            return (folder / log_name(rank)).uri
    return None


def ranks_with_logs(sizes: Sizes) -> list[int]:
    """Ranks that have printed something, by the files of an attempt."""
    found = (re.fullmatch(r"rank-(\d+)\.log", name) for name in sizes)
    return sorted(int(match[1]) for match in found if match)


class RankLog:
    """The log of one rank, read on as it grows."""

    def __init__(self, attempt: Folder, rank: int) -> None:
        self._folder = attempt
        self._first, self._last, self._before = (log_name(rank, part) for part in PARTS)
        self._is_in_first = True
        self._position = 0
        self._before_was: tuple[int, str] | None = None

    def read(self, sizes: Sizes) -> bytes:
        """The new content, given the `sizes` of the attempt's files. Raises StorageError, and leaves its position
        unchanged, if a file was replaced meanwhile."""
        data, position, is_in_first = b"", self._position, self._is_in_first
        before = sizes.get(self._before)
        if is_in_first:
            data, position = self._rest(self._first, position, sizes)
            if self._last in sizes:
                is_in_first, position = False, 0
                data += self._rest(self._before, 0, sizes)[0]
        elif before != self._before_was and before is not None:  # what was the last file has another name now
            if before[0] < position:
                data, position = _SKIPPED, 0
            data += self._rest(self._before, position, sizes)[0]
            position = 0
        if not is_in_first:
            more, position = self._rest(self._last, position, sizes)
            data += more
        self._position, self._is_in_first, self._before_was = position, is_in_first, before
        return data

    def _rest(self, name: str, start: int, sizes: Sizes) -> tuple[bytes, int]:
        """The content of a file from `start` on, and its end."""
        end = sizes.get(name, (0, ""))[0]
        if end <= start:
            return b"", start
        return bytes(self._folder.read_range(name, start, end - start)), end


def chosen_attempt(run: Folder, attempt: int | None) -> int | None:
    """The attempt, or by default the latest one with logs; None if no worker has printed anything. Raises UserError if
    the attempt has no logs."""
    found = attempts_with_logs(run)
    if attempt is not None and attempt not in found:
        known = f"attempts with logs: {', '.join(map(str, found))}" if found else "no worker has printed anything"
        raise UserError(f"{run.uri} has no logs of attempt {attempt}: {known}")
    return attempt if attempt is not None else max(found, default=None)
