"""Something between the TrainJob and its RayJob fails: the status says so, and an existing RayJob still decides."""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import yaml
from operator_process import SETTINGS, OperatorProcess, operator

from cluster.client import Cluster
from cluster.jobs import Jobs, eventually


def failing_webhook(namespace: str, group: str, plural: str) -> dict[str, Any]:
    """An admission webhook that nobody serves."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": f"{plural}-{namespace}"},
        "webhooks": [
            {
                "name": "down.example.com",
                "clientConfig": {"url": "https://127.0.0.1:9/"},
                "rules": [
                    {"apiGroups": [group], "apiVersions": ["*"], "resources": [plural], "operations": ["CREATE"]}
                ],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "failurePolicy": "Fail",
            }
        ],
    }


@pytest.fixture
def webhooks(jobs: Jobs) -> Generator[None]:
    """Webhooks of the namespace's RayJobs and Events that fail."""
    found = [
        failing_webhook(jobs.namespace, group, plural) for group, plural in (("ray.io", "rayjobs"), ("", "events"))
    ]
    jobs.cluster.apply(*found)
    yield
    for each in found:
        jobs.cluster.kubectl("delete", "validatingwebhookconfiguration", each["metadata"]["name"])


@pytest.mark.usefixtures("webhooks")
def test_a_webhook_that_fails_is_named_and_other_namespaces_go_on(jobs: Jobs, tmp_path: Path):
    other = Jobs(jobs.cluster, f"{jobs.namespace}-other")
    jobs.cluster.kubectl("create", "namespace", other.namespace)
    with operator(jobs.cluster, tmp_path, [jobs.namespace, other.namespace]):
        jobs.create("refused")
        assert "down.example.com" in jobs.until("refused", phase="Pending", reason="RayJobRefused")["message"]
        other.create()
        eventually(lambda: "Created" in other.events())
    other.kubectl("delete", "trainjob", "job")
    jobs.cluster.kubectl("delete", "namespace", other.namespace, "--wait=false")


def test_a_pool_that_is_renamed_does_not_hide_the_rayjob(jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with operator(jobs.cluster, tmp_path, [jobs.namespace]):
        jobs.create(workers={"gpus": 1, "nodePool": "a100"})
        jobs.until(phase="Pending", reason="PodsStarting")
    monkeypatch.setitem(SETTINGS, "nodePools", {"renamed": {}})
    jobs.report("rayjob", "job", {"jobDeploymentStatus": "Running"})
    with operator(jobs.cluster, tmp_path, [jobs.namespace]):
        assert "there is no node pool a100" in jobs.until(phase="Starting")["message"]
        jobs.report("rayjob", "job", {"jobDeploymentStatus": "Failed", "jobStatus": "FAILED", "reason": "AppFailed"})
        jobs.until(phase="Failed", reason="AppFailed")


def test_a_job_that_finished_while_the_operator_was_down_gets_no_new_rayjob(jobs: Jobs, tmp_path: Path):
    with operator(jobs.cluster, tmp_path, [jobs.namespace]):
        jobs.create(suspend=True)
        jobs.until(phase="Suspended")
    jobs.report("trainjob", "job", {"training": {"stage": "Finished"}})
    jobs.kubectl("delete", "rayjob", "job")
    with operator(jobs.cluster, tmp_path, [jobs.namespace]):
        jobs.until(phase="Succeeded")
        assert jobs.get("rayjobs") is None
        assert "RayJobRecreated" not in jobs.events()


@pytest.mark.usefixtures("process")
def test_a_status_that_cannot_be_read_freezes_nothing(jobs: Jobs):
    jobs.create()
    jobs.until(phase="Pending", reason="PodsStarting")
    jobs.report("trainjob", "job", {"training": {"failure": {"exception": "AssertionError"}, "bestCheckpoint": {}}})
    jobs.report("rayjob", "job", {"jobDeploymentStatus": "Failed", "jobStatus": "FAILED", "reason": "AppFailed"})
    assert jobs.until(phase="Failed")["message"] == "the driver failed: AssertionError"


@pytest.mark.usefixtures("process")
def test_a_changed_config_and_a_deletion_that_is_held_up_are_said(jobs: Jobs):
    function = {"name": "train:loop", "config": {"lr": 1}}
    metadata = {"finalizers": ["example.com/audit"]}
    jobs.create(metadata=metadata, model={"function": function}, dataset=None)
    jobs.until(phase="Pending", reason="PodsStarting")
    before = jobs.ray_job()["spec"]["rayClusterSpec"]
    jobs.patch("trainjob", "job", {"spec": {"model": {"function": {"config": {"lr": None, "rate": 5}}}, "retries": 2}})
    eventually(lambda: _accepted(jobs)["reason"] == "ConfigChanged", because=lambda: str(jobs.status()))
    eventually(lambda: jobs.ray_job()["spec"]["backoffLimit"] == 2)
    head = "headGroupSpec"
    changed = _config(jobs.ray_job()["spec"]["rayClusterSpec"][head])
    assert changed == _config(before[head]) == {"lr": 1}
    jobs.kubectl("delete", "trainjob", "job", "--wait=false")
    eventually(lambda: _accepted(jobs)["reason"] == "Deleting", because=lambda: str(jobs.status()))
    jobs.kubectl("delete", "rayjob", "job")
    status = jobs.until(phase="Pending", reason="Deleting")
    assert status["message"].endswith("the TrainJob is being deleted")
    jobs.patch("trainjob", "job", {"metadata": {"finalizers": []}})
    eventually(lambda: jobs.get("trainjobs") is None)
    assert jobs.get("rayjobs") is None


def _accepted(jobs: Jobs) -> dict[str, Any]:
    return next(each for each in jobs.status()["conditions"] if each["type"] == "Accepted")


def _config(head: dict[str, Any]) -> Any:
    snapshot = yaml.safe_load(head["template"]["metadata"]["annotations"]["trainjob.dev/trainjob"])
    return snapshot["spec"]["model"]["function"]["config"]


@pytest.mark.usefixtures("process")
def test_after_finished_the_deadline_stops_a_driver_that_hangs(jobs: Jobs):
    jobs.create(deadlines={"total": "8s"})
    jobs.until(phase="Pending", reason="PodsStarting")
    jobs.report("trainjob", "job", {"training": {"stage": "Finished"}})
    jobs.until(phase="Succeeded")
    eventually(lambda: jobs.get("rayjobs") is None)
    assert jobs.status()["phase"] == "Succeeded"


@pytest.mark.usefixtures("process")
def test_labels_and_annotations_that_are_stripped_come_back(jobs: Jobs):
    jobs.create()
    jobs.until(phase="Pending", reason="PodsStarting")
    jobs.patch("rayjob", "job", {"metadata": {"labels": {"trainjob.dev/uid": None}}})
    eventually(lambda: "trainjob.dev/uid" in jobs.ray_job()["metadata"]["labels"])
    jobs.patch("rayjob", "job", {"metadata": {"annotations": {"trainjob.dev/name": None}}})
    eventually(lambda: "trainjob.dev/name" in jobs.ray_job()["metadata"]["annotations"])


def test_the_operator_is_unready_until_it_may_watch(cluster: Cluster, jobs: Jobs, tmp_path: Path):
    jobs.create()
    jobs.kubectl("create", "serviceaccount", "operator")
    configuration = json.loads(cluster.kubeconfig.read_text())
    configuration["users"][0]["user"] = {"token": jobs.kubectl("create", "token", "operator").strip()}
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(configuration))
    process = OperatorProcess(cluster, tmp_path, [jobs.namespace], environment={"KUBECONFIG": str(kubeconfig)})
    try:
        eventually(lambda: "trainjobs cannot be listed" in process.log.read_text(), because=process.log.read_text)
        with pytest.raises(OSError, match="503"):
            process.get("/readyz")
        jobs.kubectl(
            "create",
            "rolebinding",
            "admin",
            "--clusterrole=cluster-admin",
            f"--serviceaccount={jobs.namespace}:operator",
        )
        process.wait_ready()
        jobs.until(phase="Pending", rayJobName="job")
    finally:
        process.kill()
