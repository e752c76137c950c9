"""Jobs that are disturbed while they train."""

import json
from typing import Any

import pytest
from train_jobs import BUCKET, TrainJobs, until_step

from cluster.jobs import eventually

EPOCHS = 30
STEPS_BETWEEN_CHECKPOINTS = 10


def test_training_goes_on_after_a_worker_pod_was_killed(jobs: TrainJobs) -> None:
    jobs.submit(**jobs.texts(EPOCHS), retries=2)
    before = until_step(jobs, 15)
    jobs.kill(jobs.pods("worker")[0])
    resumed = jobs.until_true(is_resumed, "training again")["training"]
    checkpoint = int(resumed["message"].rpartition("-")[2])
    assert checkpoint >= before - STEPS_BETWEEN_CHECKPOINTS
    status = jobs.until_phase("Succeeded")
    assert status["attempt"] == 1
    assert steps(jobs) == list(range(1, status["training"]["steps"] + 1))


def test_after_the_head_was_killed_the_next_attempt_ends_with_the_same_weights(jobs: TrainJobs) -> None:
    jobs.submit("whole", **jobs.texts(EPOCHS))
    jobs.submit("broken", **jobs.texts(EPOCHS), retries=2)
    until_step(jobs, 15, "broken")
    jobs.kill(jobs.pods("head", "broken")[0])
    assert jobs.until_phase("Retrying", "broken")["reason"] == "HeadLost"
    jobs.until_true(is_resumed, "training again", "broken")
    jobs.until_phase("Succeeded", "broken")
    jobs.until_phase("Succeeded", "whole")
    assert weights(jobs, "broken") == weights(jobs, "whole")


def test_a_suspended_job_gives_its_pods_back_and_goes_on_later(jobs: TrainJobs) -> None:
    jobs.submit(**jobs.texts(EPOCHS))
    until_step(jobs, 15)
    jobs.patch("trainjob", "job", {"spec": {"suspend": True}})
    jobs.until_phase("Suspended")
    eventually(lambda: not pods(jobs), seconds=60, because=lambda: f"pods are left: {pods(jobs)}")
    jobs.patch("trainjob", "job", {"spec": {"suspend": False}})
    jobs.until_true(is_resumed, "training again")
    assert jobs.until_phase("Succeeded")["attempt"] == 1


def test_deleting_a_job_deletes_all_that_it_made(jobs: TrainJobs) -> None:
    jobs.submit(**jobs.texts(EPOCHS))
    until_step(jobs, 1)
    jobs.kubectl("delete", "trainjob", "job")

    def left() -> str:
        return jobs.kubectl("get", "rayjobs,rayclusters,jobs,pods,services", "--output=name")

    eventually(lambda: not left(), seconds=90, because=left)


@pytest.mark.parametrize("trouble", ["credentials", "bucket"])
def test_storage_that_cannot_be_used_is_named(jobs: TrainJobs, trouble: str) -> None:
    wrong: dict[str, Any] = {"uri": "s3://there-is-none/runs"} if trouble == "bucket" else {"secretName": "wrong"}
    credentials = {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "not-a-secret"}
    metadata = {"name": "wrong", "namespace": jobs.namespace}
    jobs.cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": credentials})
    jobs.submit(storage=jobs.storage() | wrong, retries=2)
    status = jobs.until_phase("Failed")
    assert f"s3://{'there-is-none' if trouble == 'bucket' else BUCKET}" in status["message"]
    assert "not-a-secret" not in json.dumps(status)
    assert status["attempt"] == 1


def is_resumed(status: dict[str, Any]) -> bool:
    return "continues from" in status.get("training", {}).get("message", "")


def steps(jobs: TrainJobs, name: str = "job") -> list[int]:
    """Of which a measurement was kept."""
    lines = jobs.store.read(f"{BUCKET}/{jobs.namespace}/{jobs.run(name)}/metrics.jsonl").splitlines()
    return [record["step"] for record in map(json.loads, lines) if record["kind"] == "step"]


def weights(jobs: TrainJobs, name: str) -> bytes:
    return jobs.store.read(f"{BUCKET}/{jobs.namespace}/{jobs.run(name)}/model/model.safetensors")


def pods(jobs: TrainJobs) -> list[str]:
    return jobs.kubectl("get", "pods", "--selector=ray.io/cluster", "--output=name").split()
