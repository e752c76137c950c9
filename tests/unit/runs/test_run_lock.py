"""The process that holds the lock of a run's folder can be told to stop."""

import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from trainjob.cli.app import app
from trainjob.errors import UserError
from trainjob.runs.lock import locked
from trainjob.storage import Folder

HOLD = """
import signal, sys
from trainjob import interrupts
from trainjob.runs.lock import locked
from trainjob.storage import Folder
signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in the background of a script
interrupts.handle_signals()
with locked(Folder(sys.argv[1])):
    print("locked", flush=True)
    try:
        interrupts.wait_for_signal()
    except KeyboardInterrupt:
        sys.exit(interrupts.exit_code())
"""


@contextmanager
def holder(run: Path) -> Generator[subprocess.Popen[str]]:
    """A process that holds the lock until it is told to stop."""
    command = [sys.executable, "-c", HOLD, str(run)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        yield process
        process.kill()


def cancelled(run: Path) -> str:
    """The command's output, or its error."""
    done = CliRunner().invoke(app, ["cancel", str(run)])
    return str(done.exception) if isinstance(done.exception, UserError) else done.stdout


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "attempts.json").write_text("{}")
    return tmp_path


def test_a_run_of_this_machine_is_cancelled(run: Path):
    with holder(run) as process:
        with pytest.raises(UserError, match="another process is running it"), locked(Folder(str(run))):
            pass  # and leaves the first one's name in the file
        told = f"process {process.pid} was told to stop; `trainjob run` continues it"
        assert cancelled(run) == f"{run} cancelled: {told}\n"
        assert process.wait(60) == 143
    assert cancelled(run) == f"{run}: no process is running it"


def test_a_run_of_another_machine_is_left_alone(run: Path):
    with locked(Folder(str(run))):
        (run / ".lock").write_text("1 elsewhere\n")
        assert cancelled(run) == f"{run}: a process on elsewhere is running it; stop it there"
        (run / ".lock").write_text("")  # of an earlier version
        assert cancelled(run) == f"{run}: a process on another machine is running it; stop it there"
        (run / ".lock").write_text(f"x {socket.gethostname()}\n")
        assert "is running it; stop it there" in cancelled(run)


def test_a_folder_without_a_run_or_a_process(tmp_path: Path):
    assert cancelled(tmp_path) == f"{tmp_path} is not a run's folder: expected attempts.json there, found nothing"
    (tmp_path / "attempts.json").write_text("{}")
    assert cancelled(tmp_path) == f"{tmp_path}: no process is running it"
