"""The cluster that pods run on, its MinIO with the tests' data, and what is kept of a test that fails."""

import fcntl
import os
import secrets
from collections.abc import Generator
from pathlib import Path

import pytest
from train_jobs import BUCKET, ObjectStore, TrainJobs, object_store, write_evidence

from cluster.client import Cluster
from kind.cluster import KindCluster
from tiny_sets import write_digits, write_texts

EVIDENCE = Path(__file__).parents[2] / "build" / "e2e"

collect_ignore = ["test_lost_node.py"] if "REGISTRY" in os.environ else []  # only kind's nodes can be taken away


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "alone: what it does to the cluster would disturb other tests")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_is_alone)


def _is_alone(item: pytest.Item) -> bool:
    return item.get_closest_marker("alone") is not None


@pytest.fixture(autouse=True)
def turn(request: pytest.FixtureRequest) -> Generator[None]:
    """Tests marked `alone` come last, and wait until no other test is running."""
    EVIDENCE.parent.mkdir(exist_ok=True)
    with open(EVIDENCE.parent / "e2e.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if _is_alone(request.node) else fcntl.LOCK_SH)
        yield


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """That of `make kind`, or with $REGISTRY that of $KUBECONFIG; KubeRay, MinIO and the chart are on it."""
    return Cluster(Path(os.environ["KUBECONFIG"])) if "REGISTRY" in os.environ else KindCluster()


@pytest.fixture(scope="session")
def store(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Generator[ObjectStore]:
    """The cluster's MinIO, with texts and digits in its bucket."""
    with object_store(cluster) as store:
        store.upload(write_texts(tmp_path_factory.mktemp("texts")), f"{BUCKET}/texts")
        store.upload(write_digits(tmp_path_factory.mktemp("digits")), f"{BUCKET}/digits")
        yield store


@pytest.fixture
def jobs(cluster: Cluster, store: ObjectStore, request: pytest.FixtureRequest) -> Generator[TrainJobs]:
    """The TrainJobs of a new namespace, where no pod may do more than Pod Security's level `restricted` lets it."""
    name = f"e2e-{secrets.token_hex(4)}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    cluster.apply(namespace, store.secret(name))
    failures = request.session.testsfailed
    yield TrainJobs(cluster, name, store)
    if request.session.testsfailed > failures:
        write_evidence(cluster, name, EVIDENCE / request.node.name)
    cluster.kubectl("delete", "namespace", name, "--wait=false")
