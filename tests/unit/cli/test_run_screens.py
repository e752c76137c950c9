"""`trainjob describe` and `trainjob list` of runs in folders."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from report_runs import FUNCTION_JOB, TEXT_JOB, epoch, finish, step, write_run
from trainjob.api.load import load_trainjob
from trainjob.cli.app import app
from trainjob.client.folders import open_folder
from trainjob.cluster.errors import NoCluster
from trainjob.errors import Notice, UserError
from trainjob.runs.folder import begin_attempt
from trainjob.runs.lock import locked

ATTEMPTS = b'{"started": "2026-01-02T09:00:00Z", "count": 2}'
RECORDS = [step(1, loss=0.9), epoch(1, validation_loss=0.5), epoch(2, validation_loss=0.4321)]


def said(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "80"})
    return str(done.exception) if isinstance(done.exception, UserError) else done.output


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = write_run(tmp_path, TEXT_JOB, RECORDS)
    folder.write("attempts.json", ATTEMPTS)
    return tmp_path / "run"


def test_a_run_that_has_stopped(run: Path):
    lines = said("describe", str(run)).splitlines()
    assert [line for line in lines if len(line) > 80 and str(run) not in line] == []
    assert lines[lines.index("Next") :] == ["Next", f"  trainjob logs {run}", "  trainjob run FILE   # continues it"]
    text = " ".join(" ".join(lines).split())
    assert "State not finished; no process of this machine is running it; started 2 times" in text
    assert "Started 2026-01-02 09:00:00Z" in text
    assert "step 20" in text
    assert "validation_loss 0.4321" in text


@pytest.mark.parametrize("command", ["describe", "list"])
def test_runs_are_shown_without_the_client_of_clusters(run: Path, command: str):
    """`pip install 'trainjob[train]'` does not install the package kubernetes."""
    script = "import sys; sys.modules['kubernetes'] = None; from trainjob.cli.app import main; main()"
    arguments = [sys.executable, "-c", script, command, str(run)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert str(run) in done.stdout


def test_a_run_that_a_process_holds(run: Path):
    with locked(write_run(run.parent, TEXT_JOB, RECORDS)):
        text = said("describe", str(run))
    assert "running on this machine" in text
    assert f"trainjob cancel {run}" in text


def test_a_finished_run(run: Path):
    finish(write_run(run.parent, TEXT_JOB, RECORDS), ["ham", "spam"])
    (run / "attempts.json").write_text('{"started": "2020-01-01T00:00:00Z", "count": 1}')
    text = " ".join(said("describe", str(run)).split())
    assert "State finished; started 1 time Started 2020-01-01 00:00:00Z; took" in text
    assert "Progress 100%, step 20" in text
    assert "validation_loss 0.4321" in text
    assert text.endswith(f"Next trainjob predict {run} DATA trainjob report {run}")


def test_a_function_has_no_model_to_predict_with(tmp_path: Path):
    run = write_run(tmp_path, FUNCTION_JOB, [])
    run.write("attempts.json", ATTEMPTS)
    assert "predict" not in said("describe", run.uri)
    assert "Progress" not in said("describe", run.uri)


def test_the_runs_of_a_folder_are_listed(run: Path, monkeypatch: pytest.MonkeyPatch):
    (run.parent / "notes.txt").touch()
    (run.parent / "empty").mkdir()
    monkeypatch.chdir(run.parent.parent)
    rows = [line.split() for line in said("list", f"{run.parent.name}/").splitlines()]
    assert rows[0] == ["NAME", "PHASE", "REASON", "ATTEMPT", "AGE"], "columns without a value are left out"
    assert [row[:-1] for row in rows[1:]] == [[f"{run.parent.name}/run", "<none>", "Unfinished", "2"]]
    assert said("list", str(run)).splitlines()[1].startswith(f"{run} ")
    assert "validation_loss" not in said("list", str(run), "-o", "wide")  # nothing is best before the end
    assert said("list", str(run.parent / "empty")) == f"No runs in {run.parent}/empty.\n"
    with pytest.raises(UserError, match="there is no folder nothing here; without an argument, list shows"):
        CliRunner().invoke(app, ["list", "nothing"], catch_exceptions=False)
    assert "only --output wide is possible" in said("list", str(run), "-o", "yaml")


def test_without_a_cluster_the_list_says_how_to_list_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(NoCluster) as caught:
        CliRunner().invoke(app, ["list"], catch_exceptions=False)
    assert str(caught.value) == (
        f"there is no kubeconfig at {tmp_path}/none: set KUBECONFIG to the file of your cluster. To list runs on this "
        "machine, name their folder: `trainjob list runs`"
    )


def test_a_damaged_run_does_not_hide_the_others(run: Path):
    other = write_run(run.parent / "more", TEXT_JOB, RECORDS)
    other.write("attempts.json", ATTEMPTS)
    (run.parent / "more" / "run").rename(run.parent / "other")
    (run / "metrics.jsonl").write_text("}{")
    with pytest.warns(Notice, match=r"metrics\.jsonl is damaged"):
        assert f"{run.parent}/other " in said("list", str(run.parent))
    assert "metrics.jsonl is damaged" in said("describe", str(run))


def test_what_is_no_run(tmp_path: Path):
    assert said("describe", str(tmp_path)).startswith(f"{tmp_path} is not a run's folder: expected")


def test_a_run_that_was_refused_has_failed_until_it_is_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mail.csv").write_text("body,kind\na,ham\nb,ham\n")
    (tmp_path / "job.yaml").write_text(TEXT_JOB.replace("/data/mail.csv", "mail.csv"))
    message = said("run", "job.yaml")
    assert "at least two" in message
    _, line = said("list", "runs", "-o", "wide").splitlines()
    assert line.split()[1:4] == ["Failed", "TrainingFailed", "1"]
    assert line.endswith(" ".join(message.split()))
    text = " ".join(said("describe", "runs/mail").split())
    assert "State failed; started 1 time" in text
    assert f"Error {' '.join(message.split())} " in text
    begin_attempt(open_folder("runs/mail"), load_trainjob(tmp_path / "job.yaml"))
    assert said("list", "runs").splitlines()[1].split()[1:4] == ["<none>", "Unfinished", "2"]
