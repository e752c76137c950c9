"""A job's pods are reached by its own pods and by KubeRay, and Ray asks them for a token."""

from pathlib import Path
from typing import Any

import pytest
from operator_process import SETTINGS, OperatorProcess, operator

from cluster.jobs import Jobs, eventually


def policy(jobs: Jobs) -> dict[str, Any]:
    """The NetworkPolicy of the namespace's one TrainJob, once there is one."""
    return eventually(lambda: next(iter(jobs.cluster.find("networkpolicies", jobs.namespace)), None))


@pytest.mark.operated
def test_a_job_has_a_network_policy_that_is_put_back_and_goes_with_it(jobs: Jobs):
    jobs.create()
    jobs.until(phase="Pending", reason="PodsStarting")
    found, pods = policy(jobs), eventually(lambda: jobs.cluster.find("pods", jobs.namespace))
    spec = found["spec"]
    own = spec["podSelector"]["matchLabels"]
    assert all(own.items() <= pod["metadata"]["labels"].items() for pod in pods)
    assert spec["policyTypes"] == ["Ingress"]
    among_themselves, of_kuberay = spec["ingress"]
    assert among_themselves == {"from": [{"podSelector": {"matchLabels": own}}]}
    assert of_kuberay["ports"] == [{"protocol": "TCP", "port": 8265}]
    assert of_kuberay["from"][0]["podSelector"] == {"matchLabels": {"app.kubernetes.io/component": "kuberay-operator"}}

    name = found["metadata"]["name"]
    for number, change in enumerate(({"ingress": [{}]}, {"podSelector": {"matchLabels": {"no": "pod"}}}, None)):
        if change is None:
            jobs.delete("networkpolicies", name)
        else:
            jobs.patch("networkpolicies", name, {"spec": change})
        jobs.patch("trainjob", "job", {"spec": {"retries": number + 1}})
        eventually(lambda: policy(jobs)["spec"] == spec)
    jobs.delete("trainjobs")
    eventually(lambda: not jobs.cluster.find("networkpolicies", jobs.namespace))


@pytest.mark.operated
def test_kuberay_gives_every_ray_process_the_token_of_its_cluster(jobs: Jobs):
    jobs.create()
    cluster = jobs.until(phase="Pending", reason="PodsStarting")["rayClusterName"]
    token = {"secretKeyRef": {"name": cluster, "key": "auth_token"}}
    for pod in eventually(lambda: found if len(found := jobs.cluster.find("pods", jobs.namespace)) == 2 else None):
        for container in [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]:
            variables = {each["name"]: each for each in container["env"]}
            assert variables["RAY_AUTH_MODE"]["value"] == "token"
            assert variables["RAY_AUTH_TOKEN"]["valueFrom"] == token
    secret = eventually(lambda: jobs.get("secrets", cluster))
    assert [owner["kind"] for owner in secret["metadata"]["ownerReferences"]] == ["RayCluster"]


def test_the_settings_switch_both_off(jobs: Jobs, tmp_path: Path):
    settings = {**SETTINGS, "network": {"rayTokens": False, "policies": False}}
    with operator(jobs.cluster, tmp_path, [jobs.namespace], settings=settings):
        jobs.create()
        jobs.until(phase="Pending", reason="PodsStarting")
        assert "authOptions" not in jobs.ray_job()["spec"]["rayClusterSpec"]
        assert jobs.cluster.find("networkpolicies", jobs.namespace) == []


def test_a_node_s_files_are_refused_by_the_operator_or_else_by_pod_security(
    jobs: Jobs, process: OperatorProcess, tmp_path: Path
):
    jobs.cluster.kubectl("label", "namespace", jobs.namespace, "pod-security.kubernetes.io/enforce=restricted")
    jobs.create(pods={"volumes": [{"name": "host", "hostPath": {"path": "/"}}]})
    assert "hostPath" in jobs.until(phase="Pending", reason="NotAllowed")["message"]
    assert jobs.get("rayjobs") is None
    process.stop()
    with operator(
        jobs.cluster, tmp_path, [jobs.namespace], settings=SETTINGS | {"unrestrictedNamespaces": [jobs.namespace]}
    ):
        assert "hostPath" in jobs.until(phase="Pending", reason="PodSecurityViolation")["message"]
