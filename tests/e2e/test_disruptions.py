"""What looks after the jobs is disturbed, and nodes are given out by pool."""

import json
from collections.abc import Generator

import pytest
from train_jobs import TrainJobs, until_step

from cluster.client import Cluster

POOL = "trainjob.test/pool"


def test_the_verdict_is_right_though_the_operator_was_killed_and_kuberay_was_away_at_the_end(jobs: TrainJobs) -> None:
    jobs.submit(**jobs.texts(epochs=6, workers=1))
    until_step(jobs, 1)
    jobs.cluster.kubectl(
        "delete", "pods", "--namespace=trainjob-system", "--selector=app.kubernetes.io/name=trainjob-operator",
        "--grace-period=0", "--force", "--wait=false",
    )  # fmt: skip
    scale = ("scale", "deployment/kuberay-operator", "--namespace=kuberay-system")
    jobs.cluster.kubectl(*scale, "--replicas=0")
    try:
        status = jobs.until_phase("Succeeded")
    finally:
        jobs.cluster.kubectl(*scale, "--replicas=1")
    jobs.until_gone()
    after = jobs.status()
    assert (after["phase"], after["attempt"]) == ("Succeeded", 1)
    assert after["completionTime"] == status["completionTime"]
    assert len(jobs.cluster.find("rayjobs", jobs.namespace)) == 1


@pytest.fixture
def gpu_node(cluster: Cluster) -> Generator[str]:
    """A node that is dressed as one of the pool `gpu`, with two GPUs that are not there."""
    nodes = json.loads(cluster.kubectl("get", "nodes", "--selector=!node-role.kubernetes.io/control-plane", "-o=json"))
    node = nodes["items"][0]["metadata"]["name"]
    cluster.kubectl("label", "node", node, f"{POOL}=gpu")
    cluster.kubectl("taint", "node", node, "nvidia.com/gpu=present:NoSchedule")
    _give_gpus(cluster, node, 2)
    yield node
    _give_gpus(cluster, node, 0)
    cluster.kubectl("taint", "node", node, "nvidia.com/gpu-")
    cluster.kubectl("label", "node", node, f"{POOL}-")


def _give_gpus(cluster: Cluster, node: str, number: int) -> None:
    gpus = {"status": {"capacity": {"nvidia.com/gpu": str(number)}}}
    cluster.kubectl("patch", "node", node, "--subresource=status", "--type=merge", "--patch", json.dumps(gpus))


def test_a_pools_jobs_run_on_its_nodes_only(jobs: TrainJobs, gpu_node: str) -> None:
    jobs.submit(workers={"count": 2, "gpus": 1, "nodePool": "gpu"})
    jobs.submit("plain", workers={"count": 2})
    jobs.until_true(lambda status: status.get("workers", {}).get("ready") == 2, "workers on the pool")
    jobs.until_true(lambda status: status.get("workers", {}).get("ready") == 2, "workers elsewhere", "plain")
    pods = {pod["metadata"]["name"]: pod for pod in jobs.cluster.find("pods", jobs.namespace)}
    (worker,) = jobs.pods("worker")
    assert pods[worker]["spec"]["nodeName"] == gpu_node
    assert pods[worker]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "2"
    assert all(pods[name]["spec"]["nodeName"] != gpu_node for name in jobs.pods(name="plain"))
