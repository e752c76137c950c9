"""A node of kind is lost with a worker on it."""

import pytest

from cluster.client import Cluster
from e2e.train_jobs import TrainJobs, resumed_from, until_step
from kind.cluster import KindCluster

APART = {
    "podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 100,
                "podAffinityTerm": {
                    "labelSelector": {"matchLabels": {"ray.io/is-ray-node": "yes"}},
                    "topologyKey": "kubernetes.io/hostname",
                },
            }
        ]
    }
}
SOON = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}


@pytest.mark.alone
def test_a_lost_node_is_named_and_training_goes_on_elsewhere(jobs: TrainJobs, cluster: Cluster) -> None:
    assert isinstance(cluster, KindCluster)
    jobs.submit(**jobs.texts(epochs=8), retries=2, pods={"affinity": APART, "tolerations": [SOON]})
    until_step(jobs, 15)
    nodes = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in cluster.find("pods", jobs.namespace)}
    (head,) = jobs.pods("head")
    worker = next(name for name in jobs.pods("worker") if nodes[name] != nodes[head])
    with cluster.without(nodes[worker]):
        told = jobs.until_waiting("job", "NodeLost")
        words = f"node {nodes[worker]} of pod {worker} does not answer"
        assert any(waiting["message"].startswith(words) for waiting in told)
        assert jobs.status()["workers"]["ready"] < 2
        with cluster.out_of_service(nodes[worker]):
            jobs.until_true(resumed_from, "training again")
            assert worker not in jobs.pods("worker")
            status = jobs.until_phase("Succeeded")
    assert status["attempt"] == 1
