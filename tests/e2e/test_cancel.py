"""A job that is followed while it trains, and cancelled in the middle of an epoch."""

import re
import subprocess

from e2e.train_jobs import LONG, TrainJobs

MANY = 1000
"""Epochs: the job is cancelled before they are over."""


def test_a_cancelled_job_ends_with_a_checkpoint_that_predicts(jobs: TrainJobs) -> None:
    spec = jobs.texts(epochs=MANY)
    spec["training"]["batchSize"] = 2  # an epoch of many steps, at whose end only it would be saved otherwise
    jobs.submit(**spec | {"checkpoints": {}})
    follow = jobs.command("logs", "job", "--follow")
    with subprocess.Popen(**follow, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        begun = next(line for line in process.stdout if _steps(line))
        trained = jobs.status()["training"]["step"]
        jobs.trainjob("cancel", "job")
        status = jobs.until_phase("Failed")
        followed, _ = process.communicate(timeout=LONG)
    assert process.returncode == 0
    steps = _steps(begun + followed)
    assert steps == sorted(set(steps))
    assert status["reason"] == "Cancelled"
    jobs.until_gone()

    unfinished = jobs.trainjob("pull", "job", code=2)
    checkpoint = unfinished.split()[-1]
    assert checkpoint.startswith(f"s3://{jobs.run()}/checkpoints/")
    assert int(checkpoint.rpartition("-")[2]) >= trained
    predicted = jobs.store.trainjob("predict", checkpoint, "--text", "red1 red2 red3")
    assert "red" in predicted.stdout, predicted.stderr


def _steps(log: str) -> list[int]:
    """The steps that the log tells."""
    return [int(step.replace(",", "")) for step in re.findall(r" step ([\d,]+)/", log)]
