"""An image classifier with four workers in two pods, its run on a volume; its driver runs out of memory once."""

from pathlib import Path

from cluster.jobs import eventually
from e2e.object_store import BUCKET
from e2e.train_jobs import LONG, Status, TrainJobs
from tiny_sets import write_digits
from trainjob import Predictor

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


def test_a_driver_that_runs_out_of_memory_is_tried_again_and_its_model_copied_from_the_volume(
    jobs: TrainJobs, tmp_path: Path
) -> None:
    jobs.claim("runs")
    jobs.store.upload(write_digits(tmp_path / "digits"), f"{BUCKET}/digits")
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
    first = jobs.until_true(lambda status: status.get("rayClusterName"), "its first cluster")["rayClusterName"]
    jobs.until_true(lambda status: status["phase"] == "Retrying" and "memory" in status["message"], "Retrying")
    jobs.until_true(lambda status: _four_are_ready(status, first), "four workers of the next cluster")
    assert len(jobs.pods("worker")) == 2
    training = jobs.until_phase("Succeeded")["training"]
    assert training["evaluation"]["test_accuracy"] > 0.5
    assert Path(training["bestCheckpoint"]["uri"]).is_relative_to("/mnt/storage")
    jobs.trainjob("pull", "job", str(tmp_path / "pulled"))
    assert Predictor.load(tmp_path / "pulled").classes == [f"digit-{number}" for number in range(5)]
    report = ["pull", "job", str(tmp_path / "report"), "--what", "report"]
    assert "digit-4" in Path(jobs.trainjob(*report).strip(), "report.html").read_text()
    eventually(lambda: not _readers(jobs), LONG, lambda: f"pods are left: {_readers(jobs)}")


def _readers(jobs: TrainJobs) -> list[str]:
    """The pods that have read the volume."""
    names = [pod["metadata"]["name"] for pod in jobs.cluster.find("pods", jobs.namespace)]
    return [name for name in names if name.startswith("trainjob-reader-")]


def _four_are_ready(status: Status, before: str) -> bool:
    return status.get("rayClusterName") != before and status["workers"] == {"desired": 4, "ready": 4}
