"""Other writers change a job's objects: an operator with other settings, or an admission policy."""

from pathlib import Path

import pytest
from operator_process import SETTINGS, operator

from cluster.jobs import Jobs, eventually
from trainjob.crd.definition import UNSEEN

CHANGES = 5


def test_two_operators_of_different_settings_do_not_write_in_turns(jobs: Jobs, tmp_path: Path):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    one = {**SETTINGS, "defaults": {"startDeadline": "10m"}}
    other = {
        **SETTINGS,
        "image": "other",
        "network": {"kuberayNamespace": "other"},
        "defaults": {"startDeadline": "2h"},
    }
    namespaces = [jobs.namespace]
    with operator(jobs.cluster, tmp_path / "one", namespaces, settings=one):
        jobs.create()
        jobs.until(phase="Pending", reason="PodsStarting")
        (policy,) = jobs.cluster.find("networkpolicies", jobs.namespace)
        generation = jobs.ray_job()["metadata"]["generation"]
        with operator(jobs.cluster, tmp_path / "other", namespaces, settings=other):
            for number in range(1, 1 + CHANGES):
                jobs.patch("trainjob", "job", {"spec": {"retries": number}})
                eventually(lambda number=number: jobs.ray_job()["spec"]["backoffLimit"] == number)
                jobs.until(observedGeneration=number + 1)
            ray_job = jobs.ray_job()
            assert ray_job["spec"]["preRunningDeadlineSeconds"] == 600
            assert ray_job["metadata"]["generation"] - generation <= 2 * CHANGES
            assert jobs.cluster.find("networkpolicies", jobs.namespace) == [policy]
            jobs.patch("trainjob", "job", {"spec": {"deadlines": {"start": "1h"}}})
            eventually(lambda: jobs.ray_job()["spec"]["preRunningDeadlineSeconds"] == 3600)
            jobs.patch("trainjob", "job", {"spec": {"deadlines": None}})
            eventually(lambda: jobs.ray_job()["spec"]["preRunningDeadlineSeconds"] == 600)


@pytest.mark.operated
def test_a_deadline_that_is_removed_is_removed_from_the_rayjob(jobs: Jobs):
    jobs.create(deadlines={"start": "1h"})
    eventually(lambda: jobs.ray_job()["spec"].get("preRunningDeadlineSeconds") == 3600)
    jobs.patch("trainjob", "job", {"spec": {"deadlines": None}})
    eventually(lambda: "preRunningDeadlineSeconds" not in jobs.ray_job()["spec"])


@pytest.mark.operated
def test_a_rayjob_that_a_policy_changes_is_not_the_one_asked_for(jobs: Jobs):
    name, version = f"change-{jobs.namespace}", "admissionregistration.k8s.io/v1beta1"
    resources = {"apiGroups": ["ray.io"], "apiVersions": ["v1"], "resources": ["rayjobs"]}
    rule = {**resources, "operations": ["CREATE", "UPDATE"]}
    patch = '[JSONPatch{op: "replace", path: "/spec/entrypoint", value: "true"}]'
    selector = {"matchLabels": {"kubernetes.io/metadata.name": jobs.namespace}}
    jobs.cluster.apply(
        {
            "apiVersion": version,
            "kind": "MutatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "matchConstraints": {"resourceRules": [rule]},
                "failurePolicy": "Fail",
                "reinvocationPolicy": "Never",
                "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
            },
        },
        {
            "apiVersion": version,
            "kind": "MutatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {"policyName": name, "matchResources": {"namespaceSelector": selector}},
        },
    )
    try:
        eventually(lambda: is_changed(jobs))
        jobs.create()
        status = jobs.until(reason="PodsStarting")
        accepted = next(each for each in status["conditions"] if each["type"] == "Accepted")
        assert (accepted["status"], accepted["reason"]) == ("False", "RayJobChanged")
        assert accepted["message"].endswith("spec.entrypoint")
        eventually(lambda: sorted(jobs.events()) == ["Created", "RayJobChanged"])
    finally:
        jobs.cluster.kubectl("delete", "mutatingadmissionpolicybindings", name)
        jobs.cluster.kubectl("delete", "mutatingadmissionpolicies", name)


def is_changed(jobs: Jobs) -> bool:
    """Whether the policy is in force by now."""
    spec = {"entrypoint": "sleep 1", "suspend": True, "shutdownAfterJobFinishes": True}
    pod = {"spec": {"containers": [{"name": "ray", "image": "none"}]}}
    cluster = {"headGroupSpec": {"rayStartParams": {}, "template": pod}}
    probe = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "probe"}}
    jobs.cluster.put("rayjobs", jobs.namespace, probe | {"spec": spec | {"rayClusterSpec": cluster}})
    found = jobs.get("rayjobs", "probe")
    jobs.cluster.delete("rayjobs", jobs.namespace, "probe")
    return found is not None and found["spec"]["entrypoint"] == "true"


@pytest.mark.operated
def test_a_trainjob_of_another_controller_is_left_alone(jobs: Jobs):
    jobs.create("theirs", managedBy="kueue.x-k8s.io/multikueue")
    jobs.create("own", managedBy="trainjob.dev/operator")
    jobs.until("own", phase="Pending", reason="PodsStarting")
    jobs.patch("trainjobs", "theirs", {"spec": {"suspend": True}})
    jobs.patch("trainjobs", "own", {"spec": {"suspend": True}})
    jobs.until("own", phase="Suspended")
    assert (jobs.get("rayjobs", "theirs"), jobs.events("theirs"), jobs.status("theirs")) == (None, [], UNSEEN)
