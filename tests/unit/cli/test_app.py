"""The command line as a user meets it: a process, its output and its exit code."""

import os
import shlex
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import typer
import typer.main
from typer.testing import CliRunner

from trainjob.cli.app import app
from trainjob.launch.worker_errors import WorkerError

JOB = """\
apiVersion: trainjob.dev/v1alpha1
kind: TrainJob
metadata: {name: tags}
spec:
  model: {imageClassifier: {cnn: {}}}
  dataset: {train: {uri: images}}
"""
HEAVY = ("torch", "ray", "transformers", "pyarrow", "numpy", "matplotlib", "sklearn", "kubernetes")


COMMANDS = (
    "init",
    "run",
    "validate",
    "plan",
    "evaluate",
    "predict",
    "baseline",
    "compress",
    "merge",
    "compare",
    "serve",
    "push",
    "pull",
    "report",
    "track",
    "submit",
    "list",
    "get",
    "describe",
    "events",
    "top",
    "logs",
    "dashboard",
    "wait",
    "suspend",
    "resume",
    "cancel",
    "delete",
    "doctor",
    "version",
)


def trainjob(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).parent / "trainjob", *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture
def job(tmp_path: Path) -> Path:
    file = tmp_path / "job.yaml"
    file.write_text(JOB)
    return file


def test_help_lists_the_commands() -> None:
    result = trainjob("--help")
    assert result.returncode == 0
    for command in COMMANDS:
        assert f" {command} " in result.stdout
    assert "..." not in result.stdout.partition("Commands:")[2]  # what a line cuts off


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples_that_are_taken(command: str) -> None:
    text = CliRunner().invoke(app, [command, "--help"], prog_name="trainjob").stdout
    assert "<bool>" not in text
    lines = text.partition("Examples:\n")[2].splitlines()
    assert lines != []
    parser: Any = typer.main.get_command(app)
    for line in lines:
        program, name, *arguments = shlex.split(line)
        assert (program, name) == ("trainjob", command)
        parser.commands[command].make_context(name, arguments)


def test_a_shell_completes_commands_and_options() -> None:
    def completed(words: str) -> list[str]:
        asked = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        return trainjob(_TRAINJOB_COMPLETE="complete_bash", **asked).stdout.split()

    assert completed("trainjob ") == list(COMMANDS)
    assert completed("trainjob run --f") == ["--fresh"]
    assert completed("trainjob run job") == []  # bash then completes the names of files
    install = f'eval "$({sys.executable} -m trainjob --show-completion)"; complete -p trainjob'
    assert subprocess.run(["bash", "-c", install], check=True, capture_output=True, timeout=120).stdout


def test_validate_accepts_a_good_file(job: Path) -> None:
    result = trainjob("validate", str(job), "--set", "spec.training.epochs=3")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == f"{job}: TrainJob tags is valid\n"


@pytest.mark.parametrize("command", ["validate", "run"])
def test_a_bad_file_ends_with_its_errors_and_code_2(job: Path, command: str) -> None:
    result = trainjob(command, str(job), "--set", "spec.workers.cuont=2", "--set", "kind=")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.splitlines() == [
        "--set spec.workers.cuont=2  spec.workers.cuont  unknown field; did you mean count?",
        "--set kind=  kind  is required",
    ]


def test_workers_is_short_for_an_override(job: Path) -> None:
    result = trainjob("run", str(job), "--workers", "0")
    assert result.returncode == 2
    assert result.stderr == "--set spec.workers.count=0  spec.workers.count  must be at least 1, got 0\n"


def test_wrong_usage_ends_with_code_2() -> None:
    result = trainjob("validate")
    assert result.returncode == 2
    assert "FILE" in result.stderr


def test_the_version_alone() -> None:
    result = trainjob("--version")
    assert (result.returncode, result.stdout) == (0, f"trainjob {version('trainjob')}\n")


def test_version_names_what_is_installed() -> None:
    result = trainjob("version")
    assert result.returncode == 0
    found = dict(line.split() for line in result.stdout.splitlines())
    assert found["python"] == sys.version.split()[0]
    assert {name: found[name] for name in ("torch", "ray", "transformers")} == {
        name: version(name) for name in ("torch", "ray", "transformers")
    }


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["version"], ["validate", "job.yaml"]])
def test_quick_commands_import_nothing_heavy(job: Path, arguments: list[str]) -> None:
    script = (
        "import sys; from trainjob.cli.app import main\n"
        f"sys.argv = ['trainjob', *{arguments}]\n"
        "try: main()\n"
        f"finally: print('heavy:', [name for name in {HEAVY} if name in sys.modules])"
    )
    command = [sys.executable, "-c", script]
    result = subprocess.run(command, cwd=job.parent, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0
    assert result.stdout.endswith("heavy: []\n")


def test_what_a_worker_raised_is_shown_as_its_own_traceback(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise WorkerError(1, "ArithmeticError", "cannot go on", 'File "own_loop.py", line 3\n', time=0.0)

    monkeypatch.setattr("trainjob.driver.run.run", fail)
    result = CliRunner().invoke(app, ["run", str(job)])
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        'File "own_loop.py", line 3',
        "worker 1 failed: ArithmeticError: cannot go on",
        "The same command continues from the latest checkpoint, or starts over if there is none yet.",
    ]


def test_python_lists_what_the_package_offers():
    import trainjob

    assert {"Predictor", "TextGenerator", "__version__"} <= set(dir(trainjob))


def test_validate_looks_at_the_data(tmp_path: Path) -> None:
    rows = [{"text": f"row {number} is {number % 2}", "label": str(number % 2)} for number in range(40)]
    lines = ["text,label", *(",".join(row.values()) for row in rows), "no label,", "none either,"]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    job = tmp_path / "job.yaml"
    job.write_text(
        "{apiVersion: trainjob.dev/v1alpha1, kind: TrainJob, metadata: {name: tags}, spec: {"
        "model: {textClassifier: {encoder: {vocabularySize: 300}}}, "
        "dataset: {train: {uri: rows.csv}, text: [text], label: label}}}"
    )
    failed = trainjob("validate", str(job), "--data")
    assert failed.returncode == 2
    assert (
        f'2 of 42 rows cannot be used\n  2 rows: the label (column "label") is empty: {tmp_path}/rows.csv, row 41; '
        in failed.stderr
    )
    assert "Traceback" not in failed.stderr
    found = trainjob("validate", str(job), "--data", "--set", "spec.dataset.onBadRows=drop")
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines() == [
        f"{job}: TrainJob tags is valid",
        "train: 32 rows",
        "validation: 8 rows, set aside from the training rows",
        "2 classes; training rows of each: 0 (16), 1 (16)",
    ]
    assert 'note: the data: dropped 2 rows of train: the label (column "label") is empty' in found.stderr
    assert not (tmp_path / "runs").exists()


def test_what_libraries_print_while_python_ends_is_not_shown() -> None:
    noisy = "import atexit, os; atexit.register(os.write, 2, b'leaked'); from trainjob.cli.app import main; main()"
    done = subprocess.run([sys.executable, "-c", noisy, "nonsense"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "nonsense" in done.stderr
    assert "leaked" not in done.stderr


def test_ctrl_c_while_the_command_is_imported_shows_no_traceback(tmp_path: Path):
    (tmp_path / "typer.py").write_text("import time\nprint('imported', flush=True)\ntime.sleep(60)")
    command = (
        "signal.signal(signal.SIGINT, signal.default_int_handler); runpy.run_module('trainjob', run_name='__main__')"
    )
    script = f"import runpy, signal, sys; sys.path.insert(0, {str(tmp_path)!r}); {command}"
    with subprocess.Popen([sys.executable, "-c", script], stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "imported\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=30) == ("", "")
    assert process.returncode == -signal.SIGINT


def test_ctrl_c_before_a_command_begins_shows_no_traceback():
    """While typer puts the commands together, it does not handle the exception itself."""
    press = "import os, signal, typer.main; typer.main.get_command = lambda _: os.kill(os.getpid(), signal.SIGINT)"
    script = f"{press}; from trainjob.cli.app import main; main()"
    done = subprocess.run([sys.executable, "-c", script, "version"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGINT, "", "")


@pytest.mark.parametrize(("command", "unbuffered"), [("version", ""), ("validate job.yaml", "1"), ("--help", "")])
def test_output_that_cannot_be_written_shows_no_traceback(job: Path, command: str, unbuffered: str):
    def ended(redirection: str) -> tuple[int, str]:
        line = f"PYTHONUNBUFFERED={unbuffered} {shlex.quote(sys.executable)} -m trainjob {command} {redirection}"
        done = subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=job.parent, capture_output=True, text=True)
        return done.returncode, done.stderr

    assert ended("> /dev/full") == (1, "the output cannot be written: No space left on device\n")
    assert ended("| true") == (1, "")
    assert ended(">&-") == (0, "")
