"""A node of kind is lost with a worker on it, and comes back."""

import os

import pytest

from cluster.client import Cluster
from e2e.train_jobs import Status, TrainJobs, resumed_from, until_step
from kind.cluster import KindCluster

ONE_A_NODE = 0.55 * (os.cpu_count() or 1)
"""CPUs of a worker: each of kind's nodes has as many as this machine, so there is room for one worker and the head."""
SOON = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
MANY = 10_000
"""Epochs: the job is deleted before they are over."""


def _trains_on(workers: int, status: Status) -> bool:
    training = status.get("training", {})
    return training.get("stage") == "Training" and training.get("workers") == workers and resumed_from(status) > 0


@pytest.mark.alone
def test_a_lost_node_is_named_and_training_goes_on_with_fewer_workers_until_it_is_back(
    jobs: TrainJobs, cluster: Cluster
) -> None:
    assert isinstance(cluster, KindCluster)
    spec = jobs.texts(epochs=MANY)
    spec["workers"] |= {"minimum": 1, "cpus": ONE_A_NODE}
    jobs.submit(**spec, pods={"tolerations": [SOON]})
    until_step(jobs, 15)
    nodes = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in cluster.find("pods", jobs.namespace)}
    (head,) = jobs.pods("head")
    worker = next(name for name in jobs.pods("worker") if nodes[name] != nodes[head])
    with cluster.without(nodes[worker]):
        jobs.until_true(lambda status: _trains_on(1, status), "training with one worker")
        told = jobs.until_waiting("job", "NodeLost")
        words = f"node {nodes[worker]} of pod {worker} does not respond"
        assert any(waiting["message"].startswith(words) for waiting in told)
        assert jobs.status()["workers"]["ready"] < 2
        with cluster.out_of_service(nodes[worker]):
            jobs.until_waiting("job", "Unschedulable")
            assert worker not in jobs.pods("worker")
            status = jobs.until_true(lambda status: _trains_on(1, status), "training with one worker still")
            assert "1 of 2 workers train" in status["message"]
            before = status["training"]["step"]
    status = jobs.until_true(lambda status: _trains_on(2, status), "training with two workers again")
    assert resumed_from(status) >= before
    until_step(jobs, resumed_from(status) + 10)
    assert jobs.status()["attempt"] == 1
