"""The training process writes progress into its TrainJob, on a real API server and beside a real operator."""

import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from training_reports import CountingServer, at_step, train_job, training

from cluster.jobs import Jobs, eventually
from trainjob.api.training_status import Failure, TrainingStatus
from trainjob.progress import status_writer
from trainjob.progress.status_writer import INTERVAL_SECONDS, StatusReporter


@pytest.mark.operated
def test_the_trainers_part_and_the_operators_do_not_disturb_each_other(jobs: Jobs, reporter: StatusReporter):
    jobs.until(phase="Pending", reason="PodsStarting")
    reporter.update(at_step(1))
    eventually(lambda: training(jobs).get("step") == 1)
    jobs.report("rayjob", "job", {"jobDeploymentStatus": "Running"})
    status = jobs.until(phase="Starting")
    assert status["training"]["updatedTime"] is not None
    reporter.update(at_step(2).model_copy(update={"metrics": {"loss": 0.5}}))
    reporter.close()
    after = jobs.status()
    assert (after["training"]["step"], after["training"]["metrics"]) == (2, {"loss": 0.5})
    assert {**after, "training": None} == {**status, "training": None}
    fields = json.loads(jobs.kubectl("get", "trainjob", "job", "--output=json", "--show-managed-fields"))
    owned = {
        entry["manager"]: set(entry["fieldsV1"]["f:status"])
        for entry in fields["metadata"]["managedFields"]
        if entry.get("subresource") == "status"
    }
    assert owned["trainjob-trainer"] == {"f:training"}
    assert "f:training" not in owned["trainjob-operator"]


def test_only_the_newest_is_written(jobs: Jobs, reporter: StatusReporter, server: CountingServer):
    since = time.monotonic()
    for step in range(100):
        reporter.update(at_step(step))
        time.sleep(0.05)
    most = (time.monotonic() - since) / INTERVAL_SECONDS + 2  # the first at once, and the last one
    reporter.close()
    assert training(jobs)["step"] == 99
    assert 2 <= len(server.requests) <= most


def test_each_answer_tells_what_retries_are_by_now(jobs: Jobs, reporter: StatusReporter):
    assert reporter.retries == 3
    jobs.patch("trainjob", "job", {"spec": {"retries": 5}})
    reporter.update(at_step(1))
    reporter.close()
    assert reporter.retries == 5


def test_what_a_snapshot_lacks_is_removed(jobs: Jobs, reporter: StatusReporter):
    failure = Failure(rank=1, exception="ValueError", message="of attempt 1", traceback="…")
    reporter.update(at_step(7).model_copy(update={"failure": failure}))
    eventually(lambda: training(jobs).get("failure"))
    reporter.update(TrainingStatus(stage="Preparing"))
    reporter.close()
    assert training(jobs).keys() == {"stage", "epoch", "epochsCompleted", "step", "percent", "isBest", "updatedTime"}


def test_the_definition_takes_every_field(jobs: Jobs, reporter: StatusReporter):
    checkpoint = {
        "uri": "s3://runs/job/\N{ROCKET}",
        "step": 2**40,
        "metric": "validation_loss",
        "value": 0.5,
    }
    everything = {
        "stage": "Finished",
        "message": "no\n\x00\x7f\u2028 half \ud83d",
        "epoch": 3,
        "epochs": 3,
        "epochsCompleted": 3,
        "step": 2**40,
        "steps": 2**40,
        "percent": 100.0,
        "phase": {"name": "validation", "done": 1, "total": 2, "unit": "rows"},
        "eta": 0.5,
        "workers": 2,
        "samplesPerSecond": 1e12,
        "tokensPerSecond": 1e12,
        "padding": 0.25,
        "loss": 1e-30,
        "learningRate": 1e-5,
        "metrics": {"validation_loss": 0.5, "a.b/c d": -1.0},
        "isBest": True,
        "code": "commit 0123456789abcdef",
        "tracking": [{"name": "mlflow", "url": "http://mlflow:5000/#/1", "message": "the server does not answer"}],
        "latestCheckpoint": checkpoint,
        "bestCheckpoint": checkpoint,
        "evaluation": {"test_f1": 0.25},
        "tuning": {
            "ended": "2/4",
            "total": 4,
            "done": 1,
            "running": 2,
            "stopped": 1,
            "failed": 0,
            "best": {"number": 1, "value": 0.5, "parameters": {"training.epochs": "3"}},
        },
        "failure": {"rank": 0, "exception": "E", "message": "m", "traceback": "t" * 9999, "retryable": False},
    }
    assert set(everything) == {info.alias for info in TrainingStatus.model_fields.values()} - {"updatedTime"}
    reporter.update(TrainingStatus.model_construct(**TrainingStatus.model_validate(everything).__dict__))
    reporter.close()
    found = training(jobs)
    assert found.keys() == {*everything, "updatedTime"}
    assert found["bestCheckpoint"] == checkpoint
    assert (found["loss"], found["learningRate"], found["failure"]["retryable"]) == (1e-30, 1e-5, False)


def test_a_token_that_is_renewed_is_read_again(jobs: Jobs, reporter: StatusReporter, account: Path):
    token = (account / "token").read_text()
    (account / "token").write_text("outdated")
    reporter.update(at_step(1))
    time.sleep(0.5)
    assert training(jobs) == {}
    (account / "token").write_text(token)
    reporter.close()
    assert training(jobs)["step"] == 1


@pytest.fixture
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_writer, "FINAL_SECONDS", 3.0)


@pytest.mark.operated
@pytest.mark.usefixtures("allowed", "_in_a_hurry")
def test_another_trainjob_of_the_same_name_is_left_alone(jobs: Jobs, server: CountingServer):
    jobs.create()
    job = train_job(jobs)
    reporter = StatusReporter(server, job)
    jobs.kubectl("delete", "trainjob", "job")
    jobs.create()
    jobs.until(phase="Pending")
    reporter.update(at_step(1))
    reporter.close()
    assert training(jobs) == {}
    assert server.requests != []
    jobs.kubectl("delete", "trainjob", "job")
    gone = StatusReporter(server, job)
    gone.update(at_step(2))
    gone.close()
    gone.update(at_step(3))
    assert jobs.get("trainjobs") is None


@pytest.mark.usefixtures("_in_a_hurry")
def test_training_ends_where_reports_are_not_allowed(
    jobs: Jobs, server: CountingServer, caplog: pytest.LogCaptureFixture
):
    jobs.create()
    reporter = StatusReporter(server, train_job(jobs))
    reporter.update(at_step(1))
    eventually(lambda: server.requests)
    with caplog.at_level(logging.WARNING):
        reporter.close()
    assert training(jobs) == {}
    first, last = dict.fromkeys(text for text in caplog.messages if jobs.namespace in text)
    assert "status.training may not be written" in first
    assert "the final report was not written within 3 seconds" in last
    for line in (first, last):
        assert "cannot patch resource" in line


@pytest.mark.operated
def test_a_failure_for_good_is_not_retried(jobs: Jobs, reporter: StatusReporter):
    def limit() -> int:
        return jobs.ray_job()["spec"]["backoffLimit"]

    failed = at_step(7).model_copy(update={"failure": Failure(rank=1, exception="ValueError", message="no such class")})
    for_good = Failure(exception="UserError", message="there is no such bucket", retryable=False)
    jobs.until(phase="Pending", reason="PodsStarting")
    reporter.update(failed)
    eventually(lambda: training(jobs).get("failure"))
    reporter.update(failed.model_copy(update={"failure": for_good}))
    eventually(lambda: limit() == 0)
    reporter.update(TrainingStatus(stage="Preparing"))  # KubeRay was faster than the operator: there is a next attempt
    eventually(lambda: limit() == 3)
    reporter.update(TrainingStatus(stage="Preparing", failure=for_good))
    reporter.close()
    eventually(lambda: limit() == 0)
    jobs.report("rayjob", "job", {"jobStatus": "FAILED", "jobDeploymentStatus": "Failed", "reason": "AppFailed"})
    status = jobs.until(phase="Failed", reason="TrainingFailed")
    assert status["message"] == "the driver failed: UserError: there is no such bucket"


DRIVER = """
import sys
from pathlib import Path
from trainjob.progress import api_server
api_server.ACCOUNT = Path(sys.argv.pop(1))
from trainjob.cli.app import main
main()
"""


def test_the_command_tells_why_it_failed(jobs: Jobs, server: CountingServer, allowed: None, tmp_path: Path):
    """`trainjob run` on the TrainJob as the operator passes it, as if in the head pod."""
    jobs.create(retries=3)
    jobs.report("trainjob", "job", {"phase": "Pending"})
    job = {
        "apiVersion": "trainjob.dev/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "job", "namespace": jobs.namespace, "uid": train_job(jobs).metadata.uid},
        "spec": {
            "model": {"imageClassifier": {"cnn": {}}},
            "dataset": {"train": {"uri": str(tmp_path / "no-such-images")}, "loader": "dataLoader"},
            "storage": {"uri": str(tmp_path / "runs")},
            "retries": 3,
        },
    }
    (tmp_path / "trainjob.yaml").write_text(json.dumps(job))
    host, port = server.url.removeprefix("https://").split(":")
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(server.account), "run", str(tmp_path / "trainjob.yaml")],
        env=os.environ | {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 2, done.stderr
    found = training(jobs)
    assert found["stage"] == "Preparing"
    assert found["failure"]["exception"] == "DataError"
    assert str(tmp_path / "no-such-images") in found["failure"]["message"]
    assert found["failure"]["retryable"] is False
    assert "\x1b" not in done.stdout
