"""The commands on the TrainJobs of a cluster, as a user gives them."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from operator_process import account
from typer.testing import CliRunner

from cluster.jobs import Jobs
from trainjob.cli.app import app
from trainjob.cluster import client as cluster_client
from trainjob.cluster.connection import Resource
from trainjob.errors import UserError

TIME = "2026-01-02T03:04:05Z"
STATUSES: dict[str, dict[str, Any]] = {
    "waiting": {
        "phase": "Pending",
        "reason": "Unschedulable",
        "message": "2 pods wait",
        "attempt": 1,
        "workers": {"desired": 2, "ready": 0},
        "waiting": [{"reason": "Unschedulable", "pods": 2, "message": "0/3 nodes are available: 3 Insufficient gpu"}],
    },
    "running": {
        "phase": "Running",
        "reason": "Training",
        "attempt": 1,
        "workers": {"desired": 2, "ready": 2},
        "storage": {"uri": "s3://runs/"},
        "training": {
            "stage": "Training",
            "epoch": 2,
            "epochs": 3,
            "step": 1200,
            "steps": 4000,
            "percent": 31.4,
            "eta": 754,
            "metrics": {"validation_f1": 0.78125},
        },
    },
    "succeeded": {"phase": "Succeeded", "reason": "Succeeded", "completionTime": TIME},
    "failed": {"phase": "Failed", "reason": "TrainingFailed", "message": "worker 1 raised", "completionTime": TIME},
}


@dataclass(frozen=True)
class Said:
    """What a command has said."""

    code: int
    out: str
    error: str

    @property
    def rows(self) -> list[list[str]]:
        return [line.split() for line in self.out.splitlines()]


Command = Callable[..., Said]


@pytest.fixture
def trainjob(jobs: Jobs) -> Command:
    """Runs a command in the namespace of `jobs`."""

    def run(*arguments: str, kubeconfig: Path = jobs.cluster.kubeconfig, namespace: str = jobs.namespace) -> Said:
        options = ["--namespace", namespace] if namespace else []
        done = CliRunner().invoke(app, [*arguments, *options], env={"KUBECONFIG": str(kubeconfig)})
        if isinstance(done.exception, UserError):
            return Said(done.exception.exit_code, done.stdout, str(done.exception))
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return Said(done.exit_code, done.stdout, done.stderr)

    return run


def create(jobs: Jobs, *names: str) -> None:
    for name in names:
        jobs.create(name, workers={"count": 2}, retries=2)
        jobs.report("trainjobs", name, STATUSES[name])


def test_jobs_are_listed_as_kubectl_does(jobs: Jobs, trainjob: Command):
    nothing = trainjob("list")
    assert (nothing.code, nothing.out) == (0, "")
    assert nothing.error == f"No TrainJobs in the namespace {jobs.namespace}.\n"
    create(jobs, *STATUSES)
    assert [row[:-1] for row in trainjob("list").rows] == [
        ["NAME", "PHASE", "REASON", "PERCENT", "ETA", "WORKERS", "ATTEMPT"],
        ["failed", "Failed", "TrainingFailed"],
        ["running", "Running", "Training", "31", "12m", "2/2", "1"],
        ["succeeded", "Succeeded", "Succeeded"],
        ["waiting", "Pending", "Unschedulable", "0/2", "1"],
    ]
    assert "worker 1 raised" in trainjob("list", "-o", "wide").out
    everywhere = trainjob("list", "-A", namespace="").rows
    assert everywhere[0][:2] == ["NAMESPACE", "NAME"]
    assert [jobs.namespace, "waiting"] in [row[:2] for row in everywhere]
    assert trainjob("list", "-o", "name").out == jobs.kubectl("get", "tj", "-o", "name")
    assert trainjob("get", "failed", "running", "-o", "name").out.splitlines() == [
        "trainjob.trainjob.dev/failed",
        "trainjob.trainjob.dev/running",
    ]
    as_kubectl = json.loads(jobs.kubectl("get", "tj", "failed", "-o", "json"))
    assert json.loads(trainjob("get", "failed", "-o", "json").out) == as_kubectl
    assert yaml.safe_load(trainjob("get", "failed", "-o", "yaml").out) == as_kubectl
    listed = yaml.safe_load(trainjob("list", "-o", "yaml").out)
    assert (listed["kind"], [each["kind"] for each in listed["items"]]) == ("List", ["TrainJob"] * len(STATUSES))


def test_a_list_of_several_pages_is_whole(jobs: Jobs, trainjob: Command, monkeypatch: pytest.MonkeyPatch):
    create(jobs, *STATUSES)
    monkeypatch.setattr(cluster_client, "PAGE", 3)
    assert [row[0] for row in trainjob("list").rows[1:]] == sorted(STATUSES)


def test_a_job_is_described_with_why_and_what_to_do(jobs: Jobs, trainjob: Command):
    create(jobs, *STATUSES)
    waiting = trainjob("describe", "waiting").out
    assert "Pending (Unschedulable), attempt 1 of 3" in waiting
    assert "2 pods: 0/3 nodes are available: 3 Insufficient gpu" in waiting
    assert "What to do: make room, ask for less, or name another node pool" in waiting
    running = trainjob("describe", "running").out
    uid = jobs.cluster.get("trainjobs", jobs.namespace, "running")["metadata"]["uid"]  # pyrefly: ignore
    assert f"s3://runs/running-{uid[:8]}\n" in running
    assert "epoch 2/3, step 1,200/4,000, 30%, 0:12:34 to go" in running
    assert "validation_f1 0.7812" in running
    assert f"trainjob logs running -n {jobs.namespace} -f" in running
    failed = trainjob("describe", "failed").out
    assert "2026-01-02 03:04:05Z  Failed     TrainingFailed: worker 1 raised" in failed


def test_a_status_of_another_version_is_shown(jobs: Jobs, trainjob: Command, monkeypatch: pytest.MonkeyPatch):
    create(jobs, "running")
    status = STATUSES["running"] | {"phase": "Dreaming", "surprise": 1}
    found = jobs.get("trainjobs", "running")
    monkeypatch.setattr(cluster_client.Connection, "request", lambda *_, **__: {**(found or {}), "status": status})
    said = trainjob("get", "running")
    assert (said.code, said.rows[1][1:4]) == (0, ["<none>", "Training", "31"])


@pytest.mark.operated
def test_the_life_of_a_job(jobs: Jobs, trainjob: Command):
    jobs.create()
    jobs.until(phase="Pending", reason="PodsStarting")
    late = trainjob("wait", "job", "--timeout", "1s")
    assert (late.code, late.out) == (124, "")
    assert trainjob("suspend", "job").out == "trainjob.trainjob.dev/job suspended\n"
    assert trainjob("wait", "job", "--for", "suspended", "--timeout", "60s").code == 0
    assert trainjob("suspend", "job").out == "trainjob.trainjob.dev/job is suspended already\n"
    assert trainjob("resume", "job").out == "trainjob.trainjob.dev/job resumed\n"
    jobs.until(phase="Pending")
    jobs.report("rayjob", "job", {"jobStatus": "FAILED", "jobDeploymentStatus": "Failed", "message": "no luck"})
    ended = trainjob("wait", "job", "--timeout", "60s")
    assert ended.code == 1
    assert ended.error.startswith("trainjob.trainjob.dev/job: Failed, ")
    assert trainjob("wait", "job", "--for", "Failed").code == 0
    happened = [row[2] for row in trainjob("events", "job").rows]
    assert happened[:2] == ["Submitted", "Created"]
    assert happened[-1] == "Failed"
    refused = trainjob("resume", "job")
    assert (refused.code, refused.error) == (1, "job: has ended, so there is nothing to resume")
    deleted = trainjob("delete", "job").out
    assert deleted.startswith("trainjob.trainjob.dev/job deleted; its run stays: s3://runs/job-")
    assert trainjob("get", "job").code == 1


def test_what_is_missing_or_forbidden_is_told_in_a_line(
    jobs: Jobs, trainjob: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    create(jobs, "waiting")
    unknown = trainjob("get", "waitng")
    message = f"there is no TrainJob waitng in the namespace {jobs.namespace}"
    assert (unknown.code, unknown.error) == (1, f"{message}; did you mean waiting?")
    assert trainjob("get", "tags").error == f"{message.replace('waitng', 'tags')}; `trainjob list` shows all"
    stranger = account(jobs, tmp_path)
    for arguments, verb in ((["list"], "list"), (["get", "waiting"], "get")):
        said = trainjob(*arguments, kubeconfig=stranger)
        assert said.code == 1
        assert said.error.startswith(f"you may not {verb} trainjobs.trainjob.dev in the namespace {jobs.namespace}: ")
    monkeypatch.setattr(cluster_client, "TRAIN_JOBS", Resource("/apis/trainjob.dev/v9", "trainjobs"))
    monkeypatch.setattr(cluster_client, "VERSION", "v9")
    other = trainjob("list")
    assert "has TrainJobs of trainjob.dev/v1alpha1, and this trainjob knows trainjob.dev/v9" in other.error
    assert trainjob("get", "waiting").error == other.error
    monkeypatch.setattr(cluster_client, "TRAIN_JOBS", Resource("/apis/nobody.example/v1", "trainjobs"))
    monkeypatch.setattr(cluster_client, "GROUP", "nobody.example")
    assert "knows no TrainJobs (trainjobs.nobody.example): install the operator's chart" in trainjob("list").error


def test_a_kubeconfig_that_leads_nowhere(jobs: Jobs, trainjob: Command, tmp_path: Path):
    missing = trainjob("list", kubeconfig=tmp_path / "none")
    assert missing.code == 1
    assert missing.error == f"there is no kubeconfig at {tmp_path}/none: set KUBECONFIG to the file of your cluster"
    for content in ("}{", "[]", "", "kind: Config", "apiVersion: v1\nkind: Config\nclusters: 3\n", "\x00\xff"):
        (tmp_path / "odd").write_text(content)
        odd = trainjob("list", kubeconfig=tmp_path / "odd")
        assert (odd.code, odd.out) == (1, ""), content
        assert odd.error.startswith(f"the kubeconfig {tmp_path}/odd cannot be used: ")
    unknown = trainjob("list", "--context", "prod")
    assert "has no context prod: it has tests" in unknown.error
    config = json.loads(jobs.cluster.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    (tmp_path / "away").write_text(json.dumps(config))
    away = trainjob("list", kubeconfig=tmp_path / "away")
    assert away.code == 1
    assert away.error.startswith("the API server https://127.0.0.1:1 does not answer (")
    config["clusters"][0]["cluster"]["server"] = json.loads(jobs.cluster.kubeconfig.read_text())["clusters"][0][
        "cluster"
    ]["server"]
    config["users"][0]["user"] = {"token": "wrong"}
    (tmp_path / "stranger").write_text(json.dumps(config))
    assert trainjob("list", kubeconfig=tmp_path / "stranger").error.endswith("these credentials: log in again")
