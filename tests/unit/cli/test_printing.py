"""Control characters in data are printed escaped."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

from trainjob.api.training_status import TrainingStatus
from trainjob.cli import app
from trainjob.cli.output import console, printable, printable_json, say
from trainjob.cli.progress import display
from trainjob.errors import Notice

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31mred\rover\x08"


def assert_harmless(shown: str) -> None:
    assert [part for part in ("\x1b]", "\x07", "\x9b", "\r", "\x08", "\x1b[2J") if part in shown] == []
    assert "\\x1b]0;owned" in shown


def test_control_characters_are_written_out():
    assert printable("a\tb\nc\x1b[31m\x9b") == "a\tb\nc\\x1b[31m\\x9b"
    assert printable("naïve 日本 🚀") == "naïve 日本 🚀"
    assert json.loads(printable_json('{"a": "\x9bx\x7f"}')) == {"a": "\x9bx\x7f"}
    assert printable_json('{\n "a": 1\n}') == '{\n "a": 1\n}'


def test_lines_and_tables(capsys: pytest.CaptureFixture[str]):
    say(f"{HOSTILE}: failed", error=True)
    assert_harmless(capsys.readouterr().err)
    file = io.StringIO()
    out = console(file=file, force_terminal=True, width=200)
    table = Table(title=Text(HOSTILE))
    table.add_column(Text("class", style="bold"))
    table.add_row(Text(HOSTILE))
    out.print(table)
    out.print(HOSTILE)
    assert_harmless(file.getvalue())
    assert "\x1b[1m" in file.getvalue(), "its own bold type comes through"


def test_an_error_that_names_a_hostile_file():
    command = [sys.executable, "-m", "trainjob", "report", f"runs/{HOSTILE}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert_harmless(done.stderr)


@pytest.mark.parametrize("function", ["write", "flush"])
def test_a_signal_after_the_output_is_written_does_not_print_it_again(function: str):
    """A trace function raises where a signal handler may: as a function of Python returns."""
    script = """
import sys
from trainjob.cli import output

def interrupt(frame, event, _):
    if frame.f_code.co_filename == output.__file__ and (event, frame.f_code.co_name) == ("return", sys.argv[1]):
        sys.settrace(None)
        raise KeyboardInterrupt
    return interrupt

output.open_output()
for number in range(3):
    sys.settrace(interrupt)
    try:
        sys.stdout.write(f"{number}\\n")
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted")
"""
    command = [sys.executable, "-c", script, function]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("0\ninterrupted\n1\ninterrupted\n2\ninterrupted\n", "")


@pytest.mark.parametrize("terminal", [True, False])
def test_progress(terminal: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("TERM", "xterm-256color")
    with (tmp_path / "out").open("w+", encoding="utf-8", newline="") as file:
        with display("job", console(file=file, force_terminal=terminal, width=200)) as progress:
            progress.update(TrainingStatus(stage="Training", epochs_completed=1, metrics={HOSTILE: 1.0}))
            progress.show("\x9b31mprinted by a worker")
        file.seek(0)
        shown = file.read()
    assert "\x9b" not in shown
    assert "\x1b]0;" not in shown
    assert "\\x9b31mprinted by a worker" in shown


def test_a_pipe_gets_whole_names(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    table = Table("name", "value")
    table.add_row("a-name-" * 30, "0.5")
    console().print(table)
    assert "a-name-" * 30 in capsys.readouterr().out


def test_a_notice_is_shown_once(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "_noticed", set())
    for text in ("two images have none", "one has", "two images have none"):
        app._show_notice(text, Notice)  # noqa: SLF001
    assert capsys.readouterr().err.splitlines() == ["note: two images have none", "note: one has"]
