"""Logs of workers are read on as they grow and change their names, without a gap and without a line twice."""

from pathlib import Path

import pytest

from trainjob.errors import UserError
from trainjob.runs.logs import RankLog, chosen_attempt, ranks_with_logs
from trainjob.storage import Folder


class Writer:
    """Writes as worker/log_capture.py does."""

    def __init__(self, folder: Path) -> None:
        self._first, self._last, self._before = (folder / f"rank-0.{part}log" for part in ("", "last.", "before-last."))
        self._file = self._first

    def write(self, text: str) -> None:
        with self._file.open("a") as file:
            file.write(text)

    def rotate(self) -> None:
        if self._last.exists():
            self._last.replace(self._before)
        self._last.touch()
        self._file = self._last


@pytest.mark.parametrize("reads", range(1, 2**6))
def test_what_is_written_is_read_once_in_its_order(tmp_path: Path, reads: int):
    """Each of six steps is followed by a read or not; at most one rename lies between two reads."""
    folder, writer, found = Folder(str(tmp_path)), Writer(tmp_path), b""
    log = RankLog(folder, 0)
    steps = [("a", False), ("b", True), ("c", False), ("d", True), ("e", True), ("f", False)]
    rotated = 0
    for number, (text, rotates) in enumerate(steps):
        writer.write(text * 3)
        if rotates:
            writer.rotate()
            rotated += 1
        if reads >> number & 1 or rotated:
            found += log.read(folder.sizes())
            rotated = 0
    found += log.read(folder.sizes())
    assert found == b"aaabbbcccdddeeefff"
    assert log.read(folder.sizes()) == b""


def test_a_log_that_was_full_twice_between_two_reads_says_so(tmp_path: Path):
    folder, writer = Folder(str(tmp_path)), Writer(tmp_path)
    log = RankLog(folder, 0)
    writer.rotate()
    writer.write("long line\n")
    assert log.read(folder.sizes()) == b"long line\n"
    writer.rotate()
    writer.write("lost")
    writer.rotate()
    writer.write("new")
    writer.rotate()
    found = log.read(folder.sizes())
    assert b"some lines were not kept" in found
    assert found.endswith(b"new")


def test_a_log_that_begins_late_is_read(tmp_path: Path):
    log = RankLog(Folder(str(tmp_path / "attempt-1")), 0)
    assert log.read(Folder(str(tmp_path / "attempt-1")).sizes()) == b""


def test_attempts_and_ranks_are_found(tmp_path: Path):
    for attempt in (1, 2, 10):
        (tmp_path / "logs" / f"attempt-{attempt}").mkdir(parents=True)
    run = Folder(str(tmp_path))
    assert chosen_attempt(run, None) == 10
    assert chosen_attempt(run, 2) == 2
    with pytest.raises(UserError, match="no logs of attempt 3: attempts with logs: 1, 2, 10"):
        chosen_attempt(run, 3)
    assert chosen_attempt(Folder(str(tmp_path / "none")), None) is None
    with pytest.raises(UserError, match="no worker has printed anything"):
        chosen_attempt(Folder(str(tmp_path / "none")), 1)
    assert ranks_with_logs(
        {"rank-10.log": (1, ""), "rank-2.log": (1, ""), "rank-2.last.log": (1, ""), "x": (1, "")}
    ) == [
        2,
        10,
    ]
