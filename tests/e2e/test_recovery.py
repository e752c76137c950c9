"""Jobs that are disturbed while they train."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from train_jobs import BUCKET, LONG, TrainJobs, object_store, resumed_from, until_step

from cluster.jobs import eventually
from tiny_sets import write_texts

EPOCHS = 15
"""On two workers; one alone is several times as fast."""
STEPS_BETWEEN_CHECKPOINTS = 10


def test_a_job_that_loses_a_worker_and_then_its_head_ends_with_the_same_weights(jobs: TrainJobs) -> None:
    jobs.submit("whole", **jobs.texts(EPOCHS))
    jobs.submit("broken", **jobs.texts(EPOCHS, loader="rayData"), retries=2)
    before = until_step(jobs, 15, "broken")
    jobs.kill(jobs.pods("worker", "broken")[0])
    status = jobs.until_true(resumed_from, "training again", "broken")
    first = resumed_from(status)
    assert first >= before - STEPS_BETWEEN_CHECKPOINTS
    assert status["attempt"] == 1
    until_step(jobs, first + STEPS_BETWEEN_CHECKPOINTS + 1, "broken")
    jobs.kill(jobs.pods("head", "broken")[0])
    assert jobs.until_phase("Retrying", "broken")["reason"] == "HeadLost"
    jobs.until_true(lambda status: resumed_from(status) > first, "training again", "broken")
    status = jobs.until_phase("Succeeded", "broken")
    assert steps(jobs, "broken") == list(range(1, status["training"]["steps"] + 1))
    jobs.until_phase("Succeeded", "whole")
    assert weights(jobs, "broken") == weights(jobs, "whole")


def test_a_suspended_job_gives_its_pods_back_and_goes_on_later(jobs: TrainJobs) -> None:
    jobs.submit(**jobs.texts(3 * EPOCHS, workers=1))
    until_step(jobs, 15)
    jobs.patch("trainjob", "job", {"spec": {"suspend": True}})
    jobs.until_phase("Suspended")
    eventually(lambda: not pods(jobs), LONG, because=lambda: f"pods are left: {pods(jobs)}")
    jobs.patch("trainjob", "job", {"spec": {"suspend": False}})
    jobs.until_true(resumed_from, "training again")
    assert jobs.until_phase("Succeeded")["attempt"] == 1


def test_deleting_a_job_deletes_all_that_it_made(jobs: TrainJobs) -> None:
    jobs.submit(**jobs.texts(EPOCHS, workers=1))
    until_step(jobs, 1)
    jobs.kubectl("delete", "trainjob", "job")

    def left() -> str:
        return jobs.kubectl("get", "rayjobs,rayclusters,jobs,pods,services", "--output=name")

    eventually(lambda: not left(), LONG, because=left)


@pytest.mark.parametrize("trouble", ["credentials", "bucket"])
def test_storage_that_cannot_be_used_is_named(jobs: TrainJobs, trouble: str) -> None:
    wrong: dict[str, Any] = {"uri": "s3://there-is-none/runs"} if trouble == "bucket" else {"secretName": "wrong"}
    credentials = {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "not-a-secret"}
    metadata = {"name": "wrong", "namespace": jobs.namespace}
    jobs.cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": credentials})
    jobs.submit(storage=jobs.storage() | wrong, retries=2, workers={"count": 1})
    status = jobs.until_phase("Failed")
    assert f"s3://{'there-is-none' if trouble == 'bucket' else BUCKET}" in status["message"]
    assert "not-a-secret" not in json.dumps(status)
    assert status["attempt"] == 1


MINIO = Path(__file__).parents[2] / "hack" / "kind" / "minio.yaml"


@pytest.fixture
def own_minio(jobs: TrainJobs, tmp_path: Path) -> str:
    """The endpoint of a MinIO in the jobs' namespace; it has the tests' texts, and its data outlive its pod."""
    image = "--output=jsonpath={.spec.template.spec.containers[0].image}"
    changes = {
        "IMAGE": jobs.cluster.kubectl("get", "deployment", "minio", "--namespace=minio", image),
        "namespace: minio": f"namespace: {jobs.namespace}",
        "emptyDir: {}": "persistentVolumeClaim: {claimName: minio}",
    }
    manifest = MINIO.read_text()
    for old, new in changes.items():
        manifest = manifest.replace(old, new)
    parts = [part for part in yaml.safe_load_all(manifest) if part["kind"] != "Namespace"]
    jobs.cluster.apply(jobs.claim("minio"), *parts)
    jobs.kubectl("rollout", "status", "deployment/minio", f"--timeout={LONG}s")
    with object_store(jobs.cluster, jobs.namespace) as store:
        store.upload(write_texts(tmp_path), f"{BUCKET}/texts")
    return f"http://minio.{jobs.namespace}:9000"


def test_a_storage_server_that_goes_away_is_waited_for(jobs: TrainJobs, own_minio: str) -> None:
    spec = jobs.texts(3 * EPOCHS, workers=1) | {"storage": jobs.storage() | {"endpoint": own_minio}}
    jobs.submit("job", **spec, retries=2)
    until_step(jobs, 15)
    jobs.kubectl("scale", "deployment/minio", "--replicas=0")
    waiting = jobs.until_true(waits_for_storage, "the wait for the storage")
    assert "the server does not answer" in waiting["training"]["message"]
    jobs.kubectl("scale", "deployment/minio", "--replicas=1")
    jobs.until_true(lambda status: not waits_for_storage(status), "the end of the wait")
    status = jobs.until_phase("Succeeded")
    assert status["attempt"] == 1
    with object_store(jobs.cluster, jobs.namespace) as store:
        kept = TrainJobs(jobs.cluster, jobs.namespace, store)
        assert steps(kept) == list(range(1, status["training"]["steps"] + 1))
        predicted = store.trainjob("predict", status["training"]["bestCheckpoint"]["uri"], "--text", "red1 red2 red3")
        assert "red" in predicted.stdout, predicted.stderr


def waits_for_storage(status: dict[str, Any]) -> bool:
    return status.get("training", {}).get("message", "").startswith("waits for the storage")


def steps(jobs: TrainJobs, name: str = "job") -> list[int]:
    """Of which a measurement was kept."""
    lines = jobs.store.read(f"{BUCKET}/{jobs.namespace}/{jobs.run(name)}/metrics.jsonl").splitlines()
    return [record["step"] for record in map(json.loads, lines) if record["kind"] == "step"]


def weights(jobs: TrainJobs, name: str) -> bytes:
    return jobs.store.read(f"{BUCKET}/{jobs.namespace}/{jobs.run(name)}/model/model.safetensors")


def pods(jobs: TrainJobs) -> list[str]:
    return [pod["metadata"]["name"] for pod in jobs.cluster.find("pods", jobs.namespace, "ray.io/cluster")]
