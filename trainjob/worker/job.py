"""The job that the driver sends to the workers, and the function that runs it. Imports neither PyTorch nor Ray."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainjob.api import TrainJobSpec
from trainjob.data import Examples, Fitted
from trainjob.launch.quick_imports import quick_imports
from trainjob.progress.channel import Address
from trainjob.progress.snapshots import OnStatus
from trainjob.storage import Folder
from trainjob.worker.log_capture import LogTarget, captured

if TYPE_CHECKING:
    from trainjob.worker.outcome import Outcome, Stopped


@dataclass(frozen=True)
class WorkerJob:
    """The work of the workers; the same for every worker."""

    spec: TrainJobSpec
    run: Folder
    attempt: int
    """The number of this start of the driver, from 1."""
    fitted: Fitted
    driver: Address | OnStatus
    """The address to which rank 0 reports progress; a function if the caller is in this process."""
    threads: int
    """CPU threads of each worker."""
    examples: Callable[[], dict[str, Examples]] | None
    """Returns the rows in memory; None if they come from Ray Data."""
    streamed: tuple[str, ...] = ()
    """The sets that are too large to keep: Ray Data divides them among the workers, again in every epoch."""
    on_ray: bool = False
    """Whether the workers are actors of a Ray cluster."""
    trains: bool = True
    """Whether to train; otherwise the best existing checkpoint is evaluated."""
    evaluates: bool = True
    """Whether to evaluate the best checkpoint; otherwise there is no outcome."""


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
