"""The cluster that pods run on, and its MinIO with the tests' data."""

import fcntl
import os
from collections.abc import Generator
from pathlib import Path

import pytest

from cluster.client import Cluster
from e2e.evidence import FOLDER
from e2e.object_store import BUCKET, ObjectStore, object_store
from e2e.train_jobs import PROJECTS, TrainJobs, namespace
from kind.cluster import KindCluster
from tiny_sets import write_projects, write_texts

collect_ignore = ["test_lost_node.py"] if "REGISTRY" in os.environ else []  # only kind's nodes can be taken away


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "alone: what it does to the cluster would disturb other tests")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_is_alone)


def _is_alone(item: pytest.Item) -> bool:
    return item.get_closest_marker("alone") is not None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Tests marked `alone` come last, and wait until no other test is running: no longer than those may take."""
    FOLDER.parent.mkdir(exist_ok=True)
    with open(FOLDER.parent / "e2e.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if _is_alone(item) else fcntl.LOCK_SH)
        return (yield)


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """The cluster of `make kind` or, with $REGISTRY, that of $KUBECONFIG, with KubeRay, MinIO and the chart."""
    return Cluster(Path(os.environ["KUBECONFIG"])) if "REGISTRY" in os.environ else KindCluster()


@pytest.fixture(scope="session")
def store(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Generator[ObjectStore]:
    """The cluster's MinIO, with texts and README's projects in its bucket."""
    with object_store(cluster) as store:
        store.upload(write_texts(tmp_path_factory.mktemp("texts")), f"{BUCKET}/texts")
        projects = tmp_path_factory.mktemp("projects") / "projects.csv"
        store.upload(write_projects(projects, PROJECTS).parent, f"{BUCKET}/projects")
        yield store


@pytest.fixture
def jobs(cluster: Cluster, store: ObjectStore, request: pytest.FixtureRequest) -> Generator[TrainJobs]:
    """The TrainJobs of a namespace that is the test's own."""
    with namespace(cluster, store, request.session, request.node.name) as jobs:
        yield jobs
