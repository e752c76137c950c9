"""`trainjob dashboard` of jobs whose head cannot be reached, each with its reason."""

from pathlib import Path
from typing import Any

import pytest
from commands import Command
from operator_process import account

from cluster.jobs import Jobs
from trainjob.api.names import UID_LABEL

IMAGE = "registry.example/trainjob:1"


def head(jobs: Jobs, **status: Any) -> None:
    """Creates the pod that the TrainJob `job` says is its head, with Ray's token in a Secret."""
    job = jobs.get("trainjobs")
    assert job is not None
    source = {"secretKeyRef": {"name": "job-ray", "key": "auth_token"}}
    environment = [{"name": "RAY_AUTH_MODE", "value": "token"}, {"name": "RAY_AUTH_TOKEN", "valueFrom": source}]
    container = {"name": "ray-head", "image": IMAGE, "env": environment}
    metadata = {"name": "job-head", "namespace": jobs.namespace, "labels": {UID_LABEL: job["metadata"]["uid"]}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "job-ray", "namespace": jobs.namespace}}
    jobs.cluster.apply(
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}},
        secret | {"stringData": {"auth_token": "a-token"}},
    )
    jobs.report("pods", "job-head", status)
    pod = jobs.get("pods", "job-head")
    assert pod is not None
    jobs.report("trainjobs", "job", {"phase": "Running", "headPodUID": pod["metadata"]["uid"]})


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ({}, "job has no running head, so there is no dashboard (no phase yet: the operator has not seen the job; "),
        (
            {"phase": "Suspended", "reason": "Queued", "message": "no quota"},
            "job has no running head, so there is no dashboard (Suspended, Queued: no quota): `trainjob describe job ",
        ),
        (
            {"phase": "Failed", "reason": "TrainingFailed", "headPodUID": "gone"},
            "job has ended (Failed, TrainingFailed), and its pods are gone with Ray's dashboard: `trainjob report job ",
        ),
        ({"phase": "Running", "headPodUID": "gone"}, "job has no running head, so there is no dashboard (Running: "),
    ],
)
def test_a_job_without_a_head(jobs: Jobs, trainjob: Command, status: dict[str, Any], said: str):
    jobs.create()
    if status:
        jobs.report("trainjobs", "job", status)
    answer = trainjob("dashboard", "job")
    assert (answer.code, answer.out) == (1, "")
    assert answer.error.startswith(said)


def test_a_head_that_cannot_be_reached(jobs: Jobs, trainjob: Command, tmp_path: Path):
    jobs.create()
    head(jobs, phase="Pending")
    assert "(Running: its head pod is starting)" in trainjob("dashboard", "job").error
    head(jobs, phase="Running")
    away = trainjob("dashboard", "job", "--no-browser")  # there is no node that it runs on
    assert (away.code, away.out) == (1, "")
    assert "pod job-head does not have a host assigned" in away.error
    viewer = account(jobs, tmp_path)
    for verbs, resources, missing in (
        ("get", "trainjobs", "list pods"),
        ("list", "pods", "get secrets"),
        ("get", "secrets", "get pods/portforward"),
    ):
        role = f"{verbs}-{resources}"
        jobs.kubectl("create", "role", role, f"--verb={verbs}", f"--resource={resources}")
        jobs.kubectl("create", "rolebinding", role, f"--role={role}", f"--serviceaccount={jobs.namespace}:operator")
        refused = trainjob("dashboard", "job", "--no-browser", kubeconfig=viewer)
        assert refused.error.startswith(f"you may not {missing} in the namespace {jobs.namespace}: "), refused
