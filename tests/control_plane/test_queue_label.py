"""The queue of a RayJob that runs, where a policy refuses to change it, as Kueue does."""

from collections.abc import Generator
from functools import partial

import pytest

from cluster.client import Cluster, KubectlError
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
    _until_refused(jobs)
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
    _until_refused(jobs)
    jobs.patch("rayjobs", "job", {"spec": {"suspend": True}})  # as Kueue does
    jobs.until(phase="Suspended", reason="Queued")
    for queue in ("cpus", None):
        jobs.patch("trainjobs", "job", {"metadata": {"labels": {LABEL: queue}}})
        eventually(partial(_is_in, jobs, queue), because=lambda: str(jobs.status()))
    jobs.until(phase="Pending", reason="PodsStarting")


def _is_in(jobs: Jobs, queue: str | None) -> bool:
    return jobs.ray_job()["metadata"]["labels"].get(LABEL) == queue


def _until_refused(jobs: Jobs) -> None:
    """Waits until the job's pods start and the policy is in force, which takes the API server a while."""
    jobs.until(phase="Pending", reason="PodsStarting")
    change = ("label", "rayjob", "job", "--overwrite", "--dry-run=server", f"{LABEL}=other")

    def is_refused() -> bool:
        try:
            jobs.kubectl(*change)
        except KubectlError as error:
            return "field is immutable" in str(error)
        return False

    eventually(is_refused)


def _accepted(jobs: Jobs, reason: str) -> dict[str, str] | None:
    found = [each for each in jobs.status().get("conditions", []) if each["type"] == "Accepted"]
    return next((each for each in found if each["reason"] == reason), None)
