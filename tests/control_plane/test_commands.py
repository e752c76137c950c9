"""The commands on the TrainJobs of a cluster, as a user gives them."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import Command
from operator_process import account

from cluster.jobs import Jobs, document, eventually
from trainjob.api.resources import Resource
from trainjob.cluster import client as cluster_client
from trainjob.cluster import served_kinds
from trainjob.errors import Notice

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
    assert [row[:2] for row in trainjob("top").rows[1:]] == [["running", "Training"], ["waiting", "Unschedulable"]]
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


def test_a_shell_completes_the_names_of_jobs(jobs: Jobs, tmp_path: Path):
    create(jobs, *STATUSES)

    def completed(words: str, kubeconfig: Path = jobs.cluster.kubeconfig) -> list[str]:
        asked = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_TRAINJOB_COMPLETE": "complete_bash"}
        environment = os.environ | asked | {"KUBECONFIG": str(kubeconfig)}
        command = Path(sys.executable).parent / "trainjob"
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert done.stderr == ""
        return done.stdout.split()

    assert completed(f"trainjob describe -n {jobs.namespace} ") == sorted(STATUSES)
    assert completed(f"trainjob describe -n {jobs.namespace} r") == ["running"]
    assert completed(f"trainjob cancel -n {jobs.namespace} running ") == ["failed", "succeeded", "waiting"]
    assert completed("trainjob describe r", tmp_path / "none") == []  # and says nothing in the middle of a line


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
    assert late.error.startswith("waiting: Pending, PodsStarting\njob was not Succeeded within 1s")
    assert trainjob("suspend", "job").out == "trainjob.trainjob.dev/job suspended\n"
    assert trainjob("wait", "job", "--for", "suspended", "--timeout", "60s").code == 0
    assert trainjob("suspend", "job").out == "trainjob.trainjob.dev/job is suspended already\n"
    assert trainjob("resume", "job").out == "trainjob.trainjob.dev/job resumed\n"
    jobs.until(phase="Pending")
    jobs.report("rayjob", "job", {"jobStatus": "FAILED", "jobDeploymentStatus": "Failed", "message": "no luck"})
    ended = trainjob("wait", "job", "--timeout", "60s")
    assert ended.code == 1
    assert ended.error.splitlines()[-1] == "trainjob.trainjob.dev/job: Failed: no luck"
    assert trainjob("wait", "job", "--for", "Failed").code == 0
    happened = [row[2] for row in trainjob("events", "job").rows]
    assert happened[:2] == ["Submitted", "Created"]
    assert happened[-1] == "Failed"
    refused = trainjob("resume", "job")
    assert (refused.code, refused.error) == (1, "job: has ended, so there is nothing to resume")
    deleted = trainjob("delete", "job").out
    assert deleted.startswith("trainjob.trainjob.dev/job deleted; its run stays: s3://runs/job-")
    assert trainjob("get", "job").code == 1


@pytest.mark.operated
def test_a_cancelled_job_ends_for_good(jobs: Jobs, trainjob: Command):
    jobs.create()
    jobs.create("held", suspend=True)
    jobs.create("refused", workers={"nodePool": "nowhere"})
    jobs.create("never", cancel=True)
    jobs.until(phase="Pending", reason="PodsStarting")
    jobs.until("held", phase="Suspended")
    jobs.until("refused", reason="UnknownNodePool")
    first = "trainjob.trainjob.dev/job cancelled; its run stays: s3://runs/job-"
    assert trainjob("cancel", "job", "held", "refused").out.startswith(first)
    for name in ("job", "held", "refused", "never"):
        jobs.until(name, phase="Failed", reason="Cancelled")
    eventually(lambda: not any(jobs.cluster.find(kind, jobs.namespace) for kind in ("rayjobs", "rayclusters", "pods")))
    assert "Cancelled: spec.cancel is true" in trainjob("events", "job").out
    assert jobs.events("never") == ["Failed"]
    assert trainjob("cancel", "job").out.startswith("trainjob.trainjob.dev/job is cancelled already")
    assert trainjob("resume", "job").error == "job: has ended, so there is nothing to resume"
    assert trainjob("wait", "job").code == 1
    jobs.patch("trainjobs", "job", {"spec": {"cancel": False, "suspend": False}})
    jobs.until(observedGeneration=3, phase="Failed", reason="Cancelled")
    assert jobs.get("rayjobs") is None
    jobs.create("other")
    jobs.report("trainjobs", "other", {"phase": "Failed", "reason": "TrainingFailed"})
    assert trainjob("cancel", "other").error == "other: has ended, so there is nothing to cancel"


CODE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "code"}, "data": {"odd": "\U0001f600\x85"}}


def manifest(file: Path, *documents: dict[str, Any]) -> str:
    file.write_text("---\n".join(yaml.safe_dump(each) for each in documents))
    return str(file)


def test_all_objects_of_a_file_are_submitted(jobs: Jobs, trainjob: Command, tmp_path: Path):
    file = manifest(tmp_path / "job.yaml", CODE, document("job"))
    names = ["configmap/code", "trainjob.trainjob.dev/job"]
    assert trainjob("submit", file).out.splitlines() == [f"{name} created" for name in names]
    assert trainjob("submit", file).out.splitlines() == [f"{name} unchanged" for name in names]
    changed = trainjob("submit", file, "--set", "spec.retries=3")
    assert changed.out.splitlines() == ["configmap/code unchanged", "trainjob.trainjob.dev/job configured"]
    found = jobs.get("trainjobs")
    assert found is not None
    assert found["spec"]["retries"] == 3
    code = jobs.get("configmaps", "code")
    assert code is not None
    assert code["data"] == CODE["data"]
    refused = trainjob("submit", file, "--set", "spec.dataset.label=other")
    assert refused.code == 1
    assert refused.error.endswith("; --name-suffix submits it as another TrainJob")
    again = trainjob("submit", file, "--set", "spec.dataset.label=other", "--name-suffix")
    assert re.fullmatch(r"trainjob\.trainjob\.dev/job-[a-z0-9]{5} created", again.out.splitlines()[1])
    jobs.report("trainjobs", "job", STATUSES["succeeded"])
    assert "has ended before (Succeeded); --name-suffix trains once more" in trainjob("submit", file).error


def test_a_file_that_cannot_be_submitted(jobs: Jobs, trainjob: Command, tmp_path: Path):
    job, file = document("job"), tmp_path / "job.yaml"
    assert trainjob("submit", str(tmp_path / "none.yaml")).error == f"{tmp_path}/none.yaml  no such file"
    invalid = trainjob("submit", manifest(file, CODE, job), "--set", "spec.workers.cuont=2")
    assert (invalid.code, jobs.get("configmaps", "code")) == (2, None)
    assert invalid.error.endswith("unknown field; did you mean count?")
    local = trainjob("submit", str(file), "--set", "spec.dataset.train.uri=rows.csv")
    assert (local.code, "rows.csv is a path on this machine" in local.error) == (2, True)
    elsewhere = {**CODE, "metadata": {"name": "code", "namespace": "default"}}
    assert "leave one of them out" in trainjob("submit", manifest(file, elsewhere, job)).error
    odd = {"apiVersion": "v1", "kind": "Kitten", "metadata": {"name": "tom"}}
    unknown = trainjob("submit", manifest(file, odd, job))
    assert (unknown.code, unknown.error) == (1, "the cluster knows no Kitten of v1")
    wrong = trainjob("submit", manifest(file, {**CODE, "data": {"a": 3}}, job))
    assert wrong.code == 1
    assert wrong.error.startswith("configmap/code: ")
    stranger = trainjob("submit", manifest(file, job), kubeconfig=account(jobs, tmp_path))
    assert stranger.error.startswith("you may not get trainjobs.trainjob.dev in the namespace ")


def test_code_is_uploaded_once_and_named_by_its_digest(jobs: Jobs, trainjob: Command, tmp_path: Path):
    code, storage = tmp_path / "code", tmp_path / "storage"
    code.mkdir()
    (code / "train.py").write_text("def loop(): pass\n")
    job = document("job")
    job["spec"] = {"model": {"function": {"name": "train:loop"}}, "storage": {"uri": f"file://{storage}"}}
    file = manifest(tmp_path / "job.yaml", job)
    said = trainjob("submit", file, "--code", str(code))
    [archive] = (storage / ".code").iterdir()
    assert re.fullmatch(r"[0-9a-f]{64}\.tar\.gz", archive.name)
    assert said.out.splitlines()[0].endswith(f"to file://{storage}/.code/{archive.name}")
    found = jobs.get("trainjobs")
    assert found is not None
    assert found["spec"]["code"] == {"uri": f"file://{storage}/.code/{archive.name}"}
    assert trainjob("submit", file, "--code", str(code)).out.splitlines()[-1] == "trainjob.trainjob.dev/job unchanged"
    (code / ".env").write_text("TOKEN=1")
    assert (
        "has files that look like secrets: .env. Nothing was uploaded"
        in trainjob("submit", file, "--code", str(code)).error
    )
    del job["spec"]["storage"]
    refused = trainjob("submit", manifest(tmp_path / "other.yaml", job), "--code", str(code))
    assert refused.error.startswith("--code needs spec.storage.uri in the file")


@pytest.mark.operated
def test_a_submitted_job_is_followed_to_its_end_and_left_alone_at_ctrl_c(jobs: Jobs, tmp_path: Path):
    command = [sys.executable, "-m", "trainjob", "submit", manifest(tmp_path / "job.yaml", document("job")), "--wait"]

    def follow() -> subprocess.Popen[str]:
        environment = {**os.environ, "KUBECONFIG": str(jobs.cluster.kubeconfig)}
        options = ["--namespace", jobs.namespace]
        return subprocess.Popen(
            [*command, *options], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    with follow() as left:
        assert left.stdout is not None
        eventually(lambda: "PodsStarting" in left.stdout.readline())
        left.send_signal(signal.SIGINT)
        _, error = left.communicate(timeout=60)
    assert left.returncode == 128 + signal.SIGINT
    assert (
        f"job keeps running: `trainjob describe job --namespace {jobs.namespace}`".replace("--namespace", "-n") in error
    )
    for status, phase, code in (
        ({"jobStatus": "FAILED", "jobDeploymentStatus": "Failed", "message": "no luck"}, "Failed", 1),
        ({"jobStatus": "SUCCEEDED", "jobDeploymentStatus": "Complete"}, "Succeeded", 0),
    ):
        jobs.delete("trainjobs")
        eventually(lambda: jobs.get("rayjobs") is None)
        with follow() as followed:
            jobs.until(phase="Pending", reason="PodsStarting")
            jobs.report("rayjob", "job", status)
            said, error = followed.communicate(timeout=60)
        assert (followed.returncode, error) == (code, "" if code == 0 else error)
        assert said.splitlines()[0] == "trainjob.trainjob.dev/job created"
        assert said.splitlines()[-1].startswith(f"job: {phase}")


def test_what_is_missing_or_forbidden_is_told_in_a_line(
    jobs: Jobs, trainjob: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    create(jobs, "waiting")
    unknown = trainjob("get", "waitng")
    message = f"there is no TrainJob waitng in the namespace {jobs.namespace}"
    assert (unknown.code, unknown.error) == (1, f"{message}; did you mean waiting?")
    assert (
        trainjob("get", "tags").error
        == f"{message.replace('waitng', 'tags')}; `trainjob list -n {jobs.namespace}` shows all"
    )
    jobs.create("new")
    fresh = trainjob("logs", "new")
    assert fresh.error == "new has no pod with the driver's log (no phase yet): --follow waits for it"
    unseen = trainjob("wait", "new", "--timeout", "1s").error
    assert unseen.startswith("waiting: no phase yet: the operator has not seen the job; `trainjob doctor` shows")
    unstored = trainjob("logs", "new", "--rank", "0").error
    assert unstored == f"new has no storage yet: `trainjob describe new -n {jobs.namespace}` shows why"
    stranger = account(jobs, tmp_path)
    for arguments, verb in ((["list"], "list"), (["get", "waiting"], "get")):
        said = trainjob(*arguments, kubeconfig=stranger)
        assert said.code == 1
        assert said.error.startswith(f"you may not {verb} trainjobs.trainjob.dev in the namespace {jobs.namespace}: ")
    monkeypatch.setattr(cluster_client, "TRAIN_JOBS", Resource("/apis/trainjob.dev/v1alpha1", "nothing"))
    assert trainjob("list").error == "404 page not found"  # no word of versions, which fit
    monkeypatch.setattr(cluster_client, "TRAIN_JOBS", Resource("/apis/trainjob.dev/v9", "trainjobs"))
    monkeypatch.setattr(served_kinds, "VERSION", "v9")
    other = trainjob("list")
    assert "has TrainJobs of trainjob.dev/v1alpha1, and this trainjob knows trainjob.dev/v9" in other.error
    assert trainjob("get", "waiting").error == other.error
    monkeypatch.setattr(cluster_client, "TRAIN_JOBS", Resource("/apis/nobody.example/v1", "trainjobs"))
    monkeypatch.setattr(served_kinds, "GROUP", "nobody.example")
    assert "knows no TrainJobs (trainjobs.nobody.example): install the operator's chart" in trainjob("list").error


def test_a_job_is_described_to_a_user_who_may_not_list_events(jobs: Jobs, trainjob: Command, tmp_path: Path):
    create(jobs, "failed")
    reader = account(jobs, tmp_path)
    jobs.kubectl("create", "role", "reader", "--verb=get", "--resource=trainjobs.trainjob.dev")
    jobs.kubectl("create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={jobs.namespace}:operator")
    with pytest.warns(Notice, match="without the Events: you may not list events in the namespace"):
        said = trainjob("describe", "failed", kubeconfig=reader)
    assert (said.code, "TrainingFailed: worker 1 raised" in said.out) == (0, True)
    assert trainjob("events", "failed", kubeconfig=reader).code == 1


def test_a_kubeconfig_that_leads_nowhere(jobs: Jobs, trainjob: Command, tmp_path: Path):
    missing = trainjob("list", kubeconfig=tmp_path / "none")
    assert missing.code == 1
    assert missing.error.startswith(f"there is no kubeconfig at {tmp_path}/none: set KUBECONFIG to the file of your")
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
