"""An image classifier with four workers in two pods, its run on a volume; its driver runs out of memory once."""

from pathlib import Path

from e2e.object_store import BUCKET
from e2e.train_jobs import LONG, Status, TrainJobs
from pages import ROOT
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
    checkpoint = Path(training["bestCheckpoint"]["uri"])
    assert checkpoint.is_relative_to("/mnt/storage")
    _copy_from_volume(jobs, checkpoint.relative_to("/mnt/storage").parts[0], tmp_path / "run")
    assert Predictor.load(tmp_path / "run").classes == [f"digit-{number}" for number in range(5)]


def _copy_from_volume(jobs: TrainJobs, run: str, target: Path) -> None:
    """Copies the run by the quickstart's commands."""
    jobs.until_gone()
    image = jobs.ray_job()["spec"]["submitterPodTemplate"]["spec"]["containers"][0]["image"]
    pod = (ROOT / "manifests" / "volume-reader.yaml").read_text().replace("IMAGE", image)
    jobs.kubectl("apply", "--filename=-", stdin=pod)
    jobs.kubectl("wait", "--for=condition=Ready", "pod/volume-reader", f"--timeout={LONG}s")
    jobs.kubectl("cp", f"volume-reader:/mnt/storage/{run}", str(target))


def _four_are_ready(status: Status, before: str) -> bool:
    return status.get("rayClusterName") != before and status["workers"] == {"desired": 4, "ready": 4}
