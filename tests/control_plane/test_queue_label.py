"""The queue of a RayJob that runs, where a policy refuses to change it, as Kueue does."""

from collections.abc import Generator

import pytest

from cluster.client import Cluster
from cluster.jobs import Jobs, eventually

pytestmark = pytest.mark.operated

API = "admissionregistration.k8s.io/v1"
LABEL = "kueue.x-k8s.io/queue-name"
SAME = f"object.metadata.?labels['{LABEL}'] == oldObject.metadata.?labels['{LABEL}']"
RULE = {"apiGroups": ["ray.io"], "apiVersions": ["v1"], "resources": ["rayjobs"], "operations": ["UPDATE"]}


@pytest.fixture
def refused(cluster: Cluster, jobs: Jobs) -> Generator[None]:
    """In the namespace, a RayJob that is not suspended keeps its queue."""
    name = jobs.namespace
    validations = [{"expression": f"object.spec.?suspend.orValue(false) || {SAME}", "message": "field is immutable"}]
    spec = {"matchConstraints": {"resourceRules": [RULE]}, "validations": validations}
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}
    binding = {"policyName": name, "validationActions": ["Deny"], "matchResources": here}
    for kind, body in (("Policy", spec), ("PolicyBinding", binding)):
        cluster.apply(
            {"apiVersion": API, "kind": f"ValidatingAdmission{kind}", "metadata": {"name": name}, "spec": body}
        )
    yield
    cluster.kubectl("delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", name)


@pytest.mark.usefixtures("refused")
def test_a_job_that_runs_stays_in_its_queue(jobs: Jobs):
    jobs.create(metadata={"labels": {LABEL: "gpus"}})
    jobs.until(phase="Pending", reason="PodsStarting")
    for change in ("cpus", None):
        jobs.patch("trainjobs", "job", {"metadata": {"labels": {LABEL: change}}})
        accepted = eventually(lambda: _accepted(jobs, "QueueChanged"), because=lambda: str(jobs.status()))
        assert "it stays gpus" in accepted["message"]
        assert jobs.ray_job()["metadata"]["labels"][LABEL] == "gpus"
        jobs.patch("trainjobs", "job", {"metadata": {"labels": {LABEL: "gpus"}}})
        eventually(lambda: _accepted(jobs, "Accepted"), because=lambda: str(jobs.status()))


@pytest.mark.usefixtures("refused")
def test_a_suspended_job_leaves_its_queue(jobs: Jobs):
    jobs.create(metadata={"labels": {LABEL: "gpus"}})
    jobs.until(phase="Pending", reason="PodsStarting")
    jobs.patch("rayjobs", "job", {"spec": {"suspend": True}})  # as Kueue does
    jobs.until(phase="Suspended", reason="Queued")
    jobs.patch("trainjobs", "job", {"metadata": {"labels": {LABEL: None}}})
    eventually(
        lambda: LABEL not in jobs.ray_job()["metadata"]["labels"], seconds=120, because=lambda: str(jobs.status())
    )
    jobs.until(phase="Pending", reason="PodsStarting")


def _accepted(jobs: Jobs, reason: str) -> dict[str, str] | None:
    found = [each for each in jobs.status().get("conditions", []) if each["type"] == "Accepted"]
    return next((each for each in found if each["reason"] == reason), None)
