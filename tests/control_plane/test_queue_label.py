"""The queue of a RayJob that runs, where a policy refuses to change it, as Kueue does."""

import json
import secrets
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
    """The namespace refuses to change the queue of a RayJob that is not suspended."""
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


@pytest.fixture
def default_queue(cluster: Cluster, jobs: Jobs) -> Generator[None]:
    """The namespace creates RayJobs without a queue suspended and in the queue `default`, as Kueue does where a
    LocalQueue has that name."""
    name = f"{jobs.namespace}-default"
    created = RULE | {"operations": ["CREATE"]}
    labels = f"metadata: Object.metadata{{labels: {{'{LABEL}': 'default'}}}}"
    queued = f"Object{{{labels}, spec: Object.spec{{suspend: true}}}}"
    spec = {
        "matchConstraints": {"resourceRules": [created]},
        "matchConditions": [{"name": "free", "expression": f"!('{LABEL}' in object.metadata.?labels.orValue({{}}))"}],
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": queued}}],
    }
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": jobs.namespace}}}
    for kind, body in (("Policy", spec), ("PolicyBinding", {"policyName": name, "matchResources": here})):
        policy = {"kind": f"MutatingAdmission{kind}", "metadata": {"name": name}, "spec": body}
        cluster.apply({"apiVersion": f"{API}beta1", **policy})
    probe = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "probe"}, "spec": {}}
    create = ("create", "--dry-run=server", "--output=jsonpath={.spec.suspend}", "--filename=-")
    eventually(lambda: jobs.kubectl(*create, stdin=json.dumps(probe)) == "true")
    yield
    cluster.kubectl("delete", "mutatingadmissionpolicy,mutatingadmissionpolicybinding", name)


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


@pytest.mark.usefixtures("refused")
def test_a_job_that_runs_enters_a_queue_once_it_was_suspended(jobs: Jobs):
    jobs.create()
    _until_refused(jobs)
    jobs.patch("trainjobs", "job", {"metadata": {"labels": {LABEL: "gpus"}}})
    accepted = eventually(lambda: _accepted(jobs, "QueueChanged"), because=lambda: str(jobs.status()))
    assert "it runs without a queue" in accepted["message"]
    jobs.patch("trainjobs", "job", {"spec": {"suspend": True}})
    jobs.until(phase="Suspended", reason="Suspended")
    eventually(lambda: _accepted(jobs, "Accepted"), because=lambda: str(jobs.status()))
    _change_another_label(jobs)
    assert _is_in(jobs, None)
    assert jobs.ray_job()["spec"]["suspend"]
    jobs.patch("trainjobs", "job", {"spec": {"suspend": False}})
    status = jobs.until(phase="Suspended", reason="Queued")
    assert "does not serve kueue.x-k8s.io" in status["message"]
    _change_another_label(jobs)
    assert _is_in(jobs, "gpus")
    assert jobs.ray_job()["spec"]["suspend"]


@pytest.mark.usefixtures("refused")
def test_a_job_without_a_queue_stays_in_the_default_queue_of_its_namespace(jobs: Jobs, default_queue: None):
    jobs.create()
    jobs.until(phase="Suspended", reason="Queued")
    _change_another_label(jobs)
    assert _is_in(jobs, "default")
    assert jobs.ray_job()["spec"]["suspend"]
    assert _accepted(jobs, "Accepted")
    jobs.patch("rayjobs", "job", {"spec": {"suspend": False}})  # as Kueue does
    jobs.until(phase="Pending", reason="PodsStarting")
    _change_another_label(jobs)
    assert _is_in(jobs, "default")
    assert not jobs.ray_job()["spec"]["suspend"]
    assert sorted(jobs.events()) == ["Created", "Suspended"]


def _change_another_label(jobs: Jobs) -> None:
    """Changes a label of the TrainJob and waits until the RayJob has it."""
    value = secrets.token_hex(4)
    jobs.patch("trainjobs", "job", {"metadata": {"labels": {"team": value}}})
    eventually(lambda: jobs.ray_job()["metadata"]["labels"].get("team") == value, because=lambda: str(jobs.status()))


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
