"""The Kubernetes cluster that these tests run on."""

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from commands import Command, commands_in
from operator_process import OperatorProcess, operator
from training_reports import CountingServer, train_job

from cluster.client import Cluster
from cluster.control_plane import ControlPlane, running
from cluster.jobs import Jobs, eventually, new_name, new_namespace
from trainjob.progress.status_writer import StatusReporter

MAX_TESTS_PER_OPERATOR = 16
"""Tests of a file that share an operator."""


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


@pytest.fixture(scope="module")
def operated(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Generator[Iterator[str]]:
    """Names of namespaces to come, which one operator watches for the tests of a file that are marked `operated`."""
    names = [new_name() for _ in range(MAX_TESTS_PER_OPERATOR)]
    with operator(cluster, tmp_path_factory.mktemp("operator"), names):
        yield iter(names)


@pytest.fixture
def namespace(request: pytest.FixtureRequest, cluster: Cluster) -> Generator[str]:
    """The name of a new namespace, which goes after the test with all that is in it."""
    is_operated = request.node.get_closest_marker("operated") is not None
    with new_namespace(cluster, next(request.getfixturevalue("operated")) if is_operated else "") as name:
        yield name


@pytest.fixture
def jobs(cluster: Cluster, namespace: str) -> Jobs:
    """The TrainJobs of a new namespace."""
    return Jobs(cluster, namespace)


@pytest.fixture
def trainjob(jobs: Jobs) -> Command:
    """Runs a command in the namespace of `jobs`."""
    return commands_in(jobs)


@pytest.fixture
def process(jobs: Jobs, tmp_path: Path) -> Generator[OperatorProcess]:
    """An operator of the test's own, which watches its namespace."""
    with operator(jobs.cluster, tmp_path, [jobs.namespace]) as process:
        yield process


@pytest.fixture
def account(jobs: Jobs, tmp_path: Path) -> Path:
    """The files that the kubelet mounts for the service account `trainer`, which may not write status yet."""
    jobs.kubectl("create", "serviceaccount", "trainer")
    folder = tmp_path / "account"
    folder.mkdir()
    (folder / "token").write_text(jobs.kubectl("create", "token", "trainer"))
    roots = eventually(lambda: jobs.get("configmaps", "kube-root-ca.crt"))
    (folder / "ca.crt").write_text(roots["data"]["ca.crt"])
    return folder


@pytest.fixture
def server(cluster: Cluster, account: Path) -> CountingServer:
    url = cluster.kubectl("config", "view", "--minify", "--output=jsonpath={.clusters[0].cluster.server}")
    return CountingServer(url, account)


@pytest.fixture
def allowed(jobs: Jobs) -> None:
    """The service account may write the status of TrainJobs."""
    account = {"kind": "ServiceAccount", "name": "trainer", "namespace": jobs.namespace}
    rule = {"apiGroups": ["trainjob.dev"], "resources": ["trainjobs/status"], "verbs": ["patch"]}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reporter"}
    metadata, version = {"name": "reporter", "namespace": jobs.namespace}, "rbac.authorization.k8s.io/v1"
    jobs.cluster.apply(
        {"apiVersion": version, "kind": "Role", "metadata": metadata, "rules": [rule]},
        {"apiVersion": version, "kind": "RoleBinding", "metadata": metadata, "subjects": [account], "roleRef": role},
    )


@pytest.fixture
def reporter(jobs: Jobs, server: CountingServer, allowed: None) -> StatusReporter:
    """The reporter of a new TrainJob."""
    jobs.create(retries=3)
    jobs.report("trainjob", "job", {"phase": "Pending"})  # as the operator has, long before there is a pod
    return StatusReporter(server, train_job(jobs))


def _install(cluster: Cluster) -> None:
    from trainjob.crd import crd

    cluster.apply(crd())
    cluster.await_definitions()
