"""The command line as a user meets it: a process, its output and its exit code."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

JOB = """\
apiVersion: trainjob.dev/v1alpha1
kind: TrainJob
metadata: {name: tags}
spec:
  model: {imageClassifier: {cnn: {}}}
  dataset: {train: {uri: images}}
"""
HEAVY = ("torch", "ray", "transformers", "pyarrow", "numpy", "matplotlib", "sklearn")


def trainjob(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trainjob", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.fixture
def job(tmp_path: Path) -> Path:
    file = tmp_path / "job.yaml"
    file.write_text(JOB)
    return file


def test_help_lists_the_commands() -> None:
    result = trainjob("--help")
    assert result.returncode == 0
    for command in ("run", "validate", "evaluate", "predict", "report", "version"):
        assert f" {command} " in result.stdout


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


def test_version_names_what_is_installed() -> None:
    result = trainjob("version")
    assert result.returncode == 0
    found = dict(line.split() for line in result.stdout.splitlines())
    assert found["python"] == sys.version.split()[0]
    assert {name: found[name] for name in ("torch", "ray", "transformers")} == {
        name: version(name) for name in ("torch", "ray", "transformers")
    }


@pytest.mark.parametrize("arguments", [["--help"], ["version"], ["validate", "job.yaml"]])
def test_quick_commands_import_nothing_heavy(job: Path, arguments: list[str]) -> None:
    script = (
        "import sys; from trainjob.cli.app import main\n"
        f"sys.argv = ['trainjob', *{arguments}]\n"
        "try: main()\n"
        f"finally: print('heavy:', [name for name in {HEAVY} if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", script], cwd=job.parent, capture_output=True, text=True, check=False)
    assert result.returncode == 0
    assert result.stdout.endswith("heavy: []\n")
