"""The status names what blocks a job's pods: refusals by the real API server, and the pods' own statuses."""

from typing import Any

import pytest

from cluster.jobs import Jobs, eventually
from trainjob_operator.observe import PAGE_OF_EVENTS

pytestmark = pytest.mark.operated


def pod(jobs: Jobs, kind: str = "worker") -> str:
    """The name of the job's head or worker pod."""

    def find() -> str | None:
        pods = jobs.cluster.find("pods", jobs.namespace)
        found = [pod["metadata"] for pod in pods if pod["metadata"]["labels"].get("ray.io/node-type") == kind]
        return found[0]["name"] if found else None

    return eventually(find)


def test_quota(jobs: Jobs):
    jobs.kubectl("create", "quota", "small", "--hard=pods=0")
    jobs.create()
    status = jobs.until(phase="Pending", reason="QuotaExceeded")
    assert "small" in status["message"]
    assert status["waiting"][0]["pods"] == 0
    eventually(lambda: "Waiting" in jobs.events())


def test_a_missing_service_account(jobs: Jobs):
    jobs.create(pods={"serviceAccountName": "nobody"})
    assert "nobody" in jobs.until(phase="Pending", reason="ServiceAccountMissing")["message"]


@pytest.mark.parametrize("kind", ["head", "worker"])
def test_the_schedulers_own_words(jobs: Jobs, kind: str):
    jobs.create()
    message = "0/5 nodes are available: 5 Insufficient nvidia.com/gpu."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    jobs.report("pod", pod(jobs, kind), {"conditions": [condition]})
    status = jobs.until(phase="Pending", reason="Unschedulable")
    assert status["waiting"] == [{"reason": "Unschedulable", "pods": 1, "message": message}]


@pytest.mark.parametrize("container", ["initContainerStatuses", "containerStatuses"])
@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("ImagePullBackOff", 'Back-off pulling image "registry.example/trainjob:1"'),
        ("CreateContainerConfigError", 'secret "minio" not found'),
        ("CrashLoopBackOff", "back-off 40s restarting failed container"),
    ],
)
def test_a_container_that_cannot_start(jobs: Jobs, container: str, reason: str, message: str):
    jobs.create()
    state: dict[str, Any] = {"waiting": {"reason": reason, "message": message}}
    names = {"initContainerStatuses": "wait-gcs-ready", "containerStatuses": "ray-worker"}
    told = {"name": names[container], "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": state}
    jobs.report("pod", pod(jobs), {"phase": "Pending", container: [told]})
    assert message in jobs.until(phase="Pending", reason=reason)["message"]


def test_a_volume_that_cannot_be_mounted(jobs: Jobs):
    jobs.create()
    name = pod(jobs)
    uid = (jobs.get("pods", name) or {})["metadata"]["uid"]
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name},
        "target": {"kind": "Node", "name": "a-node"},
    }
    jobs.cluster.create_raw(f"/api/v1/namespaces/{jobs.namespace}/pods/{name}/binding", binding)
    involved = {"kind": "Pod", "name": name, "namespace": jobs.namespace, "uid": uid}
    told = 'MountVolume.SetUp failed for volume "code": configmap "code" not found'
    for number in range(PAGE_OF_EVENTS):  # of another pod, and listed before
        warn(jobs, f"a.{number}", involved | {"name": "another", "uid": "another"}, "of another")
    warn(jobs, f"{name}.1", involved, told)
    assert "configmap" in jobs.until(phase="Pending", reason="FailedMount")["message"]


def warn(jobs: Jobs, name: str, involved: dict[str, Any], message: str) -> None:
    """Makes an Event as a kubelet does that cannot mount a volume."""
    event = {
        "metadata": {"name": name},
        "involvedObject": involved,
        "reason": "FailedMount",
        "message": message,
        "type": "Warning",
    }
    jobs.cluster.request("POST", f"/api/v1/namespaces/{jobs.namespace}/events", event)


def test_the_reason_goes_when_the_pod_gets_on(jobs: Jobs):
    jobs.create()
    name = pod(jobs)
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
    jobs.report("pod", name, {"conditions": [condition]})
    jobs.until(phase="Pending", reason="Unschedulable")
    jobs.report("pod", name, {"conditions": [{"type": "PodScheduled", "status": "True"}]})
    assert jobs.until(phase="Pending", reason="PodsStarting")["waiting"] == []
