"""On a cluster with Kubeflow Trainer, whose resource is also called TrainJob."""

import json
from collections.abc import Generator
from typing import Any

import pytest

from cluster.client import Cluster
from cluster.jobs import Jobs, eventually

GROUP = "trainer.kubeflow.org"
KUBEFLOW: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"trainjobs.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"kind": "TrainJob", "listKind": "TrainJobList", "plural": "trainjobs", "singular": "trainjob"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@pytest.fixture
def theirs(cluster: Cluster, jobs: Jobs) -> Generator[str]:
    """The path of Kubeflow's TrainJobs in the namespace, of which there is one called `job`."""
    cluster.apply(KUBEFLOW)
    path = f"/apis/{GROUP}/v1alpha1/namespaces/{jobs.namespace}/trainjobs"
    job = {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "job"},
        "spec": {"suspend": True},
    }
    eventually(lambda: cluster.request("POST", path, job))
    yield f"{path}/job"
    cluster.kubectl("delete", "crd", KUBEFLOW["metadata"]["name"])


@pytest.mark.operated
def test_each_has_its_own_trainjobs(cluster: Cluster, jobs: Jobs, theirs: str):
    before = cluster.request("GET", theirs)
    jobs.create()
    jobs.until(phase="Pending", reason="PodsStarting")
    [owner] = jobs.ray_job()["metadata"]["ownerReferences"]
    assert owner["apiVersion"] == "trainjob.dev/v1alpha1"
    for name in ("tj", "trainjobs.trainjob.dev"):
        found = json.loads(jobs.kubectl("get", name, "job", "--output=json"))
        assert found["apiVersion"] == "trainjob.dev/v1alpha1"
    assert cluster.request("GET", theirs) == before, "the operator has changed Kubeflow's TrainJob"
    cluster.request("DELETE", theirs)
    eventually(lambda: cluster.request("GET", theirs) is None)
    jobs.patch("trainjobs", "job", {"spec": {"suspend": True}})
    jobs.until(phase="Suspended")
