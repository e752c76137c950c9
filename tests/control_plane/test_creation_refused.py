"""Objects that KubeRay and the Job controller cannot create are reported, and do not hold a job's pods forever."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cluster.client import KubectlError
from cluster.jobs import Jobs, eventually
from nightly import at_night
from trainjob_operator.deadlines import KUBERAY_END_GRACE

pytestmark = pytest.mark.operated

READY = {"phase": "Running", "podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]}
RUNNING = {"state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}, "image": "i", "imageID": "", "restartCount": 0}


@pytest.mark.parametrize("what", [at_night("rayclusters.ray.io"), "services"])
def test_a_quota_for_what_comes_before_the_pods(jobs: Jobs, what: str):
    forbid(jobs, what)
    jobs.create()
    status = jobs.until(phase="Pending", reason="QuotaExceeded")
    assert f"count/{what}" in status["message"]
    assert [each["pods"] for each in status["waiting"]] == [0]
    eventually(lambda: "Waiting" in jobs.events())
    jobs.kubectl("delete", "quota", "small")
    assert jobs.until(phase="Pending", reason="PodsStarting")["waiting"] == []


def test_a_secret_that_kuberay_cannot_create(jobs: Jobs):
    """KubeRay emits no Event for this."""
    forbid(jobs, "secrets")
    jobs.create()
    cluster = jobs.until(phase="Pending", reason="PodsStarting")["rayClusterName"]
    eventually(lambda: jobs.get("rayclusters", cluster))
    jobs.report("rayjobs", "job", {"startTime": "2026-01-01T00:00:00Z"})
    assert "Secret" in jobs.until(phase="Pending", reason="PodsNotCreated")["message"]
    assert jobs.cluster.find("pods", jobs.namespace) == []


def test_a_quota_for_the_submitters_job(jobs: Jobs):
    forbid(jobs, "jobs.batch")
    jobs.create()
    start_pods(jobs)
    assert "count/jobs.batch" in jobs.until(phase="Pending", reason="QuotaExceeded")["message"]


def test_a_policy_that_refuses_the_submitters_pod(jobs: Jobs):
    """The driver never starts then: at the deadline the job ends, and its pods go."""
    with denied(jobs, "has(object.metadata.labels) && 'job-name' in object.metadata.labels"):
        jobs.create(retries=3)
        start_pods(jobs)
        status = jobs.until(phase="Starting", reason="AdmissionDenied")
        assert "the pod that submits the job" in status["message"]
        jobs.patch("trainjob", "job", {"spec": {"deadlines": {"start": "1s"}}})
        status = jobs.until(phase="Failed", reason="PreRunningDeadlineExceeded")
        assert status["message"].startswith("the driver has not started within spec.deadlines.start, 1s; it waited for")
        assert [each["reason"] for each in status["waiting"]] == ["AdmissionDenied"]
        eventually(lambda: not jobs.cluster.find("pods", jobs.namespace))


def test_a_failure_for_good_that_kuberay_cannot_ask_for(jobs: Jobs):
    """KubeRay polls the job through a Service."""
    with denied(jobs, "object.metadata.name == 'job-head-svc'"):
        jobs.create(retries=3)
        start_pods(jobs)
        assert "not here" in jobs.until(phase="Starting", reason="AdmissionDenied")["message"]
        ago = datetime.now(UTC) - KUBERAY_END_GRACE
        jobs.report("rayjobs", "job", {"startTime": (ago - timedelta(minutes=1)).isoformat(timespec="seconds")})
        failure = {"exception": "UserError", "message": "no column tag", "retryable": False}
        jobs.report(
            "trainjob", "job", {"training": {"updatedTime": ago.isoformat(timespec="seconds"), "failure": failure}}
        )
        jobs.until(phase="Failed", reason="TrainingFailed", message="the driver failed: UserError: no column tag")
        eventually(lambda: not jobs.cluster.find("pods", jobs.namespace))
        eventually(lambda: "RayJobDeleted" in jobs.events())


def forbid(jobs: Jobs, what: str) -> None:
    """Makes a quota refuse all objects of a kind. Until they are counted, it refuses them with another message; on a
    busy machine, the controller manager takes minutes to discover a new custom resource."""
    jobs.kubectl("create", "quota", "small", f"--hard=count/{what}=0")

    def is_counted() -> bool:
        status = (jobs.get("resourcequotas", "small") or {}).get("status", {})
        return f"count/{what}" in status.get("used", {})

    eventually(is_counted, seconds=300)


def start_pods(jobs: Jobs) -> None:
    """Reports the head and the worker as ready, as a kubelet does."""
    pods = eventually(lambda: found if len(found := jobs.cluster.find("pods", jobs.namespace)) == 2 else None)
    for pod in pods:
        statuses = [{"name": each["name"], "ready": True, **RUNNING} for each in pod["spec"]["containers"]]
        jobs.report("pods", pod["metadata"]["name"], {**READY, "containerStatuses": statuses})


@contextmanager
def denied(jobs: Jobs, condition: str) -> Generator[None]:
    """During the block, the namespace admits no pod and no Service that meets the condition."""
    name, version = f"deny-{jobs.namespace}", "admissionregistration.k8s.io/v1"
    resources = ["pods", "services"]
    rule: dict[str, Any] = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": resources}
    selector = {"matchLabels": {"kubernetes.io/metadata.name": jobs.namespace}}
    jobs.cluster.apply(
        {
            "apiVersion": version,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "matchConstraints": {"resourceRules": [rule]},
                "validations": [{"expression": f"!({condition})", "message": "not here"}],
            },
        },
        {
            "apiVersion": version,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {
                "policyName": name,
                "validationActions": ["Deny"],
                "matchResources": {"namespaceSelector": selector},
            },
        },
    )
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "job-head-svc", "labels": {"job-name": "probe"}},
        "spec": {"containers": [{"name": "probe", "image": "probe"}]},
    }

    def is_in_force() -> bool:
        """The API server takes a moment to compile a policy."""
        try:
            jobs.kubectl("create", "--dry-run=server", "--filename=-", stdin=json.dumps(pod))
        except KubectlError as error:
            return "not here" in str(error)
        return False

    try:
        eventually(is_in_force)
        yield
    finally:
        jobs.cluster.kubectl("delete", "validatingadmissionpolicybindings", name)
        jobs.cluster.kubectl("delete", "validatingadmissionpolicies", name)
