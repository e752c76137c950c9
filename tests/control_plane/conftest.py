"""The Kubernetes cluster that these tests run on."""

import os
from collections.abc import Generator
from pathlib import Path

import pytest
from operator_process import OperatorProcess, operator

from cluster.client import Cluster
from cluster.control_plane import ControlPlane, running
from cluster.jobs import Jobs


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Generator[ControlPlane]:
    """A cluster whose components a test may stop and start."""
    with running(tmp_path_factory.mktemp("control-plane")) as control_plane:
        _install(control_plane)
        yield control_plane


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """The cluster of $KUBECONFIG, which has KubeRay already; without it, the tests' own control plane."""
    if kubeconfig := os.environ.get("KUBECONFIG"):
        cluster = Cluster(Path(kubeconfig))
        _install(cluster)
        return cluster
    return request.getfixturevalue("control_plane")


@pytest.fixture
def jobs(cluster: Cluster, namespace: str) -> Jobs:
    """The TrainJobs of a new namespace."""
    return Jobs(cluster, namespace)


@pytest.fixture
def process(jobs: Jobs, tmp_path: Path) -> Generator[OperatorProcess]:
    """An operator that watches this namespace."""
    with operator(jobs.cluster, tmp_path, [jobs.namespace]) as process:
        yield process


def _install(cluster: Cluster) -> None:
    from trainjob.crd import crd

    cluster.apply(crd())
    cluster.await_definitions()
