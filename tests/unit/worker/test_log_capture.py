"""The output of workers is kept in the run's folder, however they end, and that of rank 0 reaches the driver."""

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from trainjob.errors import UserError
from trainjob.progress.channel import ProgressReceiver
from trainjob.runs.files import ATTEMPTS
from trainjob.runs.logs import latest_log
from trainjob.storage import Folder
from trainjob.worker import log_capture
from trainjob.worker.log_capture import LineReader, LogTarget, captured

FOLDERS = ["{path}", "file://{path}"]
"""Written to directly, and through copies as object storage is."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ATTEMPTS).touch()
    return tmp_path / "run"


def say(text: str) -> None:
    os.write(1, text.encode())


@pytest.mark.parametrize("uri", FOLDERS)
def test_all_that_a_worker_and_its_children_print_is_kept(path: Path, uri: str):
    run = Folder(uri.format(path=path))
    with captured(LogTarget(run, 2), rank=1):
        say("output\n")
        os.write(2, b"an error\n")
        subprocess.run(["echo", "from a child"], check=True)
    text = (path / "logs" / "attempt-2" / "rank-1.log").read_text()
    assert text == "output\nan error\nfrom a child\n"
    assert latest_log(run, 1) == f"{run.uri}/logs/attempt-2/rank-1.log"
    assert latest_log(run, 0) is None


@pytest.mark.parametrize("uri", FOLDERS)
def test_what_a_silent_worker_raises_is_raised(path: Path, uri: str):
    with pytest.raises(ArithmeticError), captured(LogTarget(Folder(uri.format(path=path)), 1), rank=0):
        raise ArithmeticError
    assert [found.name for found in path.iterdir()] == [ATTEMPTS]


def test_pythons_own_buffer_is_written(path: Path):
    script = (
        "from trainjob.storage import Folder\nfrom trainjob.worker.log_capture import LogTarget, captured\n"
        f"with captured(LogTarget(Folder({str(path)!r}), 1), 0):\n    print('first')\n    print('second', end='')\n"
        "print('after')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (path / "logs" / "attempt-1" / "rank-0.log").read_text() == "first\nsecond"
    assert (done.stdout, done.stderr) == ("after\n", "")


def test_print_does_not_use_the_standard_output_of_ray(path: Path, monkeypatch: pytest.MonkeyPatch):
    rays = io.StringIO()
    monkeypatch.setattr(sys, "stdout", rays)
    with captured(LogTarget(Folder(str(path)), 1), rank=0):
        print("a line")
    assert (path / "logs" / "attempt-1" / "rank-0.log").read_text() == "a line\n"
    assert sys.stdout is rays
    assert rays.getvalue() == ""


@pytest.mark.parametrize("uri", FOLDERS)
def test_workers_that_start_again_append(path: Path, uri: str):
    for text in ("one\n", "two\n"):
        with captured(LogTarget(Folder(uri.format(path=path)), 1), rank=0):
            say(text)
    assert (path / "logs" / "attempt-1" / "rank-0.log").read_text() == "one\ntwo\n"


@pytest.mark.parametrize("uri", FOLDERS)
def test_what_prints_nothing_leaves_nothing(path: Path, uri: str):
    with captured(LogTarget(Folder(uri.format(path=path)), 1), rank=0):
        pass
    assert [entry.name for entry in path.iterdir()] == [ATTEMPTS]


def test_a_worker_that_is_killed_leaves_what_it_printed(path: Path):
    script = (
        "import os\nfrom trainjob.storage import Folder\n"
        "from trainjob.worker.log_capture import LogTarget, captured\n"
        f"with captured(LogTarget(Folder({str(path)!r}), 1), 0):\n    print('last words')\n    os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False)
    assert done.returncode == -signal.SIGKILL
    assert (path / "logs" / "attempt-1" / "rank-0.log").read_text() == "last words\n"


def test_object_storage_has_it_while_the_worker_goes_on(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(log_capture, "UPLOAD_SECONDS", 0.0)
    log = path / "logs" / "attempt-1" / "rank-0.log"
    with captured(LogTarget(Folder(f"file://{path}"), 1), rank=0):
        say("so far\n")
        wait_for(lambda: log.exists() and log.read_text() == "so far\n")


def test_of_very_much_the_beginning_and_the_end_are_kept(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(log_capture, "FILE_BYTES", 1000)
    folder = path / "logs" / "attempt-1"
    last, before = folder / "rank-0.last.log", folder / "rank-0.before-last.log"
    with captured(LogTarget(Folder(str(path)), 1), rank=0):
        say("a" * 1000)
        wait_for(lambda: output_goes_to(last))
        assert "continues in rank-0.last.log" in (folder / "rank-0.log").read_text()
        for letter in "bcd":
            say(letter * 1000)
            wait_for(lambda: output_goes_to(last) and before.exists() and before.read_text() == letter * 1000)  # noqa: B023
        say("end")
    first = (folder / "rank-0.log").read_text()
    assert first.startswith("a" * 1000)
    assert first.count("the lines between rank-0.before-last.log and this file were too many to keep") == 1
    assert (before.read_text(), last.read_text()) == ("d" * 1000, "end")
    assert len(list(folder.iterdir())) == 3


def test_rank_0_is_heard_by_the_driver_to_its_last_word(path: Path):
    shown: list[str] = []
    with ProgressReceiver(lambda status: None, show=shown.append) as receiver:
        for rank in (0, 1):
            with captured(LogTarget(Folder(str(path)), 1, receiver.address), rank):
                say(f"rank {rank}\nthe end")
    assert shown == ["rank 0", "the end"]


def test_a_run_whose_folder_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("trainjob.runs.folder.POLL_SECONDS", 0)
    with (
        pytest.raises(UserError, match="was removed during the run"),
        captured(LogTarget(Folder(str(tmp_path)), 1), 0),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_lines():
    shown: list[str] = []
    lines = LineReader(shown.append)
    for data in (b"whole\npar", b"t\n\r 10%", b"\r100%\r\nend\r\n", "ä".encode()[:1], "ä".encode()[1:]):
        lines.add(data)
    assert shown == ["whole", "part", "100%\nend"]
    lines.skip(12345)
    lines.add(b"\xff\n\n")
    lines.finish()
    assert shown[3:] == ["ä", "[trainjob: 12,345 bytes are not shown here, see logs in the run's folder]", "\ufffd\n"]


def output_goes_to(path: Path) -> bool:
    """Whether file descriptors 1 and 2 write to it: a new file is not in use at once."""
    return path.exists() and all(os.path.samestat(os.fstat(number), path.stat()) for number in (1, 2))


def wait_for(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.01)
