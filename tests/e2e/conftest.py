"""The cluster that pods run on, its MinIO with the tests' data, and what is kept of a test that fails."""

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
