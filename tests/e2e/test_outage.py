"""Services that a job depends on are down for a while: its S3 server during training, KubeRay at the end."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.client import Cluster
from e2e.object_store import BUCKET, object_store
from e2e.train_jobs import TrainJobs, until_step
from tiny_sets import write_texts

MINIO = Path(__file__).parents[2] / "hack" / "kind" / "minio.yaml"


@pytest.fixture
def own_minio(jobs: TrainJobs) -> str:
    """The endpoint of a MinIO in the jobs' namespace, whose data outlive its pod."""
    image = "--output=jsonpath={.spec.template.spec.containers[0].image}"
    changes = {
        "IMAGE": jobs.cluster.kubectl("get", "deployment", "minio", "--namespace=minio", image),
        "namespace: minio": f"namespace: {jobs.namespace}",
        "emptyDir: {}": "persistentVolumeClaim: {claimName: minio}",
    }
    manifest = MINIO.read_text()
    for old, new in changes.items():
        manifest = manifest.replace(old, new)
    jobs.claim("minio")
    jobs.cluster.apply(*(found for found in yaml.safe_load_all(manifest) if found["kind"] != "Namespace"))
    jobs.kubectl("rollout", "status", "deployment/minio", "--timeout=300s")
    return f"http://minio.{jobs.namespace}:9000"


@contextmanager
def _without_kuberay(cluster: Cluster) -> Generator[None]:
    scale = ("scale", "deployment/kuberay-operator", "--namespace=kuberay-system")
    cluster.kubectl(*scale, "--replicas=0")
    try:
        yield
    finally:
        cluster.kubectl(*scale, "--replicas=1")


def test_a_job_outlives_outages_of_its_storage_and_of_kuberay(jobs: TrainJobs, own_minio: str, tmp_path: Path) -> None:
    with object_store(jobs.cluster, jobs.namespace) as store:
        store.upload(write_texts(tmp_path), f"{BUCKET}/texts")
    spec: dict[str, Any] = jobs.texts(30, workers=1) | {"storage": jobs.storage() | {"endpoint": own_minio}}
    jobs.submit(**spec, retries=2)
    until_step(jobs, 15)
    jobs.kubectl("scale", "deployment/minio", "--replicas=0")
    waiting = jobs.until_true(_waits_for_storage, "the wait for the storage")
    assert "the server does not answer" in waiting["training"]["message"]
    with _without_kuberay(jobs.cluster):
        jobs.kubectl("scale", "deployment/minio", "--replicas=1")
        status = jobs.until_phase("Succeeded")
        assert not _waits_for_storage(status)
    jobs.until_gone()
    after = jobs.status()
    assert (after["phase"], after["attempt"]) == ("Succeeded", 1)
    assert after["completionTime"] == status["completionTime"]
    assert len(jobs.cluster.find("rayjobs", jobs.namespace)) == 1
    with object_store(jobs.cluster, jobs.namespace) as store:
        lines = store.read(f"{jobs.run()}/metrics.jsonl").splitlines()
    steps = [record["step"] for record in map(json.loads, lines) if record["kind"] == "step"]
    assert steps == list(range(1, status["training"]["steps"] + 1))


def _waits_for_storage(status: dict[str, Any]) -> bool:
    return status.get("training", {}).get("message", "").startswith("waiting for storage")
