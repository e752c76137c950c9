"""A job on a pool of GPU nodes, which a worker node stands for; deleting a job while it runs."""

import json
from collections.abc import Generator

import pytest

from cluster.client import Cluster
from cluster.jobs import eventually
from e2e.train_jobs import LONG, TrainJobs

POOL = "trainjob.test/pool"


@pytest.fixture
def gpu_node(cluster: Cluster) -> Generator[str]:
    """A node with the label and the taint of the pool `gpu`, and two GPUs that are not there."""
    nodes = json.loads(cluster.kubectl("get", "nodes", "--selector=!node-role.kubernetes.io/control-plane", "-o=json"))
    node = nodes["items"][0]["metadata"]["name"]
    try:
        cluster.kubectl("label", "node", node, f"{POOL}=gpu", "--overwrite")
        cluster.kubectl("taint", "node", node, "nvidia.com/gpu=present:NoSchedule", "--overwrite")
        _give_gpus(cluster, node, 2)
        yield node
    finally:
        _give_gpus(cluster, node, 0)
        cluster.kubectl("taint", "node", node, "nvidia.com/gpu-")
        cluster.kubectl("label", "node", node, f"{POOL}-")


def _give_gpus(cluster: Cluster, node: str, number: int) -> None:
    gpus = {"status": {"capacity": {"nvidia.com/gpu": str(number)}}}
    cluster.kubectl("patch", "node", node, "--subresource=status", "--type=merge", "--patch", json.dumps(gpus))


@pytest.mark.core
def test_a_pools_job_runs_on_its_nodes_and_goes_with_its_trainjob(jobs: TrainJobs, gpu_node: str) -> None:
    jobs.submit(workers={"count": 2, "gpus": 1, "nodePool": "gpu"}, retries=20)  # it fails: there is no GPU
    jobs.until_true(lambda status: status.get("workers", {}).get("ready") == 2, "workers on the pool")
    pods = {pod["metadata"]["name"]: pod["spec"] for pod in jobs.cluster.find("pods", jobs.namespace)}
    (worker,), (head,) = jobs.pods("worker"), jobs.pods("head")
    assert pods[worker]["nodeName"] == gpu_node
    assert pods[worker]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "2"
    assert pods[head]["nodeName"] != gpu_node  # the taint keeps it away
    jobs.kubectl("delete", "trainjob", "job", f"--timeout={LONG}s")
    eventually(lambda: not _left(jobs), LONG, lambda: f"still there: {_left(jobs)}")


def _left(jobs: TrainJobs) -> list[str]:
    return jobs.kubectl("get", "rayjobs,rayclusters,jobs,pods,services", "--output=name").split()
