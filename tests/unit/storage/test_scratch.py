"""Temporary folders: when they go, and what is said where there is no room for them."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from trainjob.errors import DataError, StorageError
from trainjob.scratch import PREFIX, YOUNG_SECONDS, scratch_folder, sweep

OWNER = """
import sys
from trainjob.scratch import scratch_folder
with scratch_folder() as folder:
    (folder / "file").touch()
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def owner() -> Generator[subprocess.Popen[str]]:
    """A process that holds a folder, whose path is its first line."""
    command = [sys.executable, "-c", OWNER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def folder_of(owner: subprocess.Popen[str]) -> Path:
    assert owner.stdout is not None
    folder = Path(owner.stdout.readline().strip())
    long_ago = time.time() - 2 * YOUNG_SECONDS
    os.utime(folder, (long_ago, long_ago))
    return folder


def test_it_is_gone_after_the_block(temporary: Path) -> None:
    with scratch_folder() as folder:
        (folder / "deep").mkdir()
        assert folder.parent == temporary
    assert list(temporary.iterdir()) == []


def test_a_killed_process_is_cleaned_up_after_and_a_living_one_is_not(owner: subprocess.Popen[str]) -> None:
    folder = folder_of(owner)
    sweep()
    assert (folder / "file").exists()
    owner.kill()
    owner.wait()
    assert (folder / "file").exists()
    sweep()
    assert not folder.exists()


def test_a_young_folder_and_what_is_not_ours_stay(temporary: Path) -> None:
    (temporary / f"{PREFIX}a1b2c3d4").mkdir()
    others = ["another", "trainjob-data", "trainjob-scratch-", "trainjob-scratch-of-mine", "trainjob-scratch-A1b2c3d4"]
    for name in others:
        (temporary / name).mkdir()
        os.utime(temporary / name, (0, 0))
    (temporary / f"{PREFIX}filefile").touch()
    os.utime(temporary / f"{PREFIX}filefile", (0, 0))
    before = set(temporary.iterdir())
    sweep()
    assert set(temporary.iterdir()) == before


def test_a_full_disk_is_said(temporary: Path) -> None:
    said = "there is no space for temporary files; free some, or set TMPDIR"
    with pytest.raises(StorageError, match=said), scratch_folder(), open("/dev/full", "w") as file:
        file.write("more than fits")
    assert list(temporary.iterdir()) == []


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(ZeroDivisionError), scratch_folder():
        _ = 1 / 0
    with pytest.raises(DataError), scratch_folder():
        raise DataError("a row is wrong")


def test_a_temporary_folder_that_is_missing_is_said(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(temporary / "missing"))
    said = "there is no folder for temporary files: No such file or directory; set TMPDIR"
    with pytest.raises(StorageError, match=said), scratch_folder():
        pass
