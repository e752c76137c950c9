"""Runs a job on one worker. Imports neither PyTorch nor Ray until the worker's output is captured."""

from typing import TYPE_CHECKING

from trainjob.launch.quick_imports import quick_imports
from trainjob.worker.job import WorkerJob
from trainjob.worker.log_capture import LogTarget, captured

if TYPE_CHECKING:
    from trainjob.worker.outcome import Outcome, Stopped


def run_worker_job(job: WorkerJob) -> "Outcome | Stopped | None":
    """Runs a job on one worker. On rank 0, returns the outcome, or Stopped if training was told to stop."""
    from trainjob.worker.distributed import rank

    with captured(LogTarget(job.run, job.attempt), rank()):
        if job.examples is None:
            import ray.train

            ray.train.get_dataset_shard("train")  # its coordinator starts while the libraries load
        with quick_imports():
            from trainjob.worker.train import train_and_score

        return train_and_score(job)
