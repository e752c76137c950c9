"""An image classifier with four workers in two pods, its run on a volume; its driver runs out of memory once."""

from e2e.object_store import BUCKET
from e2e.train_jobs import Status, TrainJobs

# Stands for a driver whose data are too many for it: Python loads a module of this name at its start.
DRIVER_FILLS_MEMORY_ONCE = """
    import sys
    from pathlib import Path

    mark = Path("/mnt/storage/{namespace}")
    if sys.orig_argv[1:4] == ["-m", "trainjob", "run"] and not mark.exists():
        mark.touch()
        kept = []
        while True:
            kept.append(bytearray(b"x" * 2**26))
"""


def test_a_driver_that_runs_out_of_memory_is_said_to_and_tried_again(jobs: TrainJobs) -> None:
    jobs.claim("runs")
    code = DRIVER_FILLS_MEMORY_ONCE.format(namespace=jobs.namespace)
    digits = {name: {"uri": f"s3://{BUCKET}/digits/{name}"} for name in ("train", "test")}
    jobs.submit(
        model={"imageClassifier": {"cnn": {"channels": [8, 16], "hidden": 32}, "dropout": 0.1}},
        dataset=digits | {"loader": "dataLoader"},
        training={"epochs": 3, "batchSize": 32, "optimizer": {"adamW": {"learningRate": 5.0e-3}}},
        checkpoints={},
        workers={"count": 4, "perPod": 2},
        storage={"persistentVolumeClaim": "runs", "endpoint": jobs.storage()["endpoint"], "secretName": "s3"},
        pods=jobs.module("sitecustomize", code),
        retries=1,
    )
    jobs.until_true(lambda status: status.get("phase") == "Retrying" and "memory" in status["message"], "Retrying")
    jobs.until_true(_four_run, "four workers that run")
    assert len(jobs.pods("worker")) == 2
    training = jobs.until_phase("Succeeded")["training"]
    assert training["evaluation"]["test_accuracy"] > 0.5
    assert training["bestCheckpoint"]["uri"].startswith("/mnt/storage/")


def _four_run(status: Status) -> bool:
    return status["phase"] == "Running" and status["workers"] == {"desired": 4, "ready": 4}
