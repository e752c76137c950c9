"""Decides whether to try again after a failure: one rule for local workers, Ray and the driver itself."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from trainjob.api import TrainJob, Workers
from trainjob.errors import StorageError, StorageUnreachable, TransientError, is_transient
from trainjob.launch.ray_cluster import is_elastic
from trainjob.launch.worker_errors import WorkerError, lost_a_worker
from trainjob.runs.attempts import Attempts, count_failure
from trainjob.runs.files import CHECKPOINTS
from trainjob.storage import Folder

Result = TypeVar("Result")

_NO_LOSS_YET = "no loss yet"
"""Stands for the newest checkpoint before the first loss of a worker; it is not the name of a checkpoint."""


def may_retry(error: Exception, failures: int, retries: int) -> bool:
    """Whether to try again after `failures` failures, including this one. Only transient errors are tried again."""
    return is_transient(error) and failures <= retries


def earlier_failures(job: TrainJob, attempts: Attempts) -> int:
    """The failures that count against `spec.retries`. On a laptop, where each command is the user's decision, none."""
    return attempts.failures if _is_counted(job) else 0


def with_retries(
    train: Callable[[], Result],
    job: TrainJob,
    run: Folder,
    attempts: Attempts,
    on_retry: Callable[[Exception], None],
    retries: Callable[[], int],
) -> Result:
    """Calls `train`, and again after each transient error as long as `retries`, whose value may change, allows it.
    Calls `on_retry` before each retry.

    The loss of a worker of an elastic job does not count as a failure, up to `_losses_allowed` between two checkpoints.
    """
    failures, losses, reached = earlier_failures(job, attempts), 0, _NO_LOSS_YET
    while True:
        try:
            return train()
        except (WorkerError, TransientError) as error:
            if is_elastic(job.spec) and lost_a_worker(error):
                before, reached = reached, _newest_checkpoint(run)
                losses = losses + 1 if reached == before else 1
                if losses <= _losses_allowed(job.spec.workers):
                    on_retry(error)
                    continue
            failures += 1
            if not may_retry(error, failures, retries()):
                raise
            if _is_counted(job):
                with suppress(StorageError):  # it then stays uncounted
                    count_failure(run)
            on_retry(error)


def _losses_allowed(workers: Workers) -> int:
    """The number of losses of one worker each that leave fewer workers than the minimum."""
    return workers.count - (workers.minimum or workers.count) + 1


def _newest_checkpoint(run: Folder) -> str:
    """The name of the newest checkpoint; a function's is Ray Train's. _NO_LOSS_YET if it cannot be read."""
    with suppress(StorageError):
        names = run.list(CHECKPOINTS)
        return max(names or [name for name in run.list() if name.startswith("checkpoint_")], default="")
    return _NO_LOSS_YET


def is_retryable(job: TrainJob, run: Folder, error: Exception, retries: int) -> bool:
    """Whether another attempt may succeed after this driver's was ended by `error`, and is still allowed.

    On a cluster, counts the failure in the run's folder, where the next driver reads it.
    """
    if not _is_counted(job) or isinstance(error, StorageUnreachable):
        return is_transient(error)
    try:
        return may_retry(error, count_failure(run), retries)
    except StorageError:  # uncounted: the cluster counts attempts, too
        return is_transient(error)


def _is_counted(job: TrainJob) -> bool:
    """Whether failures count over all drivers, as on a cluster."""
    return job.metadata.uid is not None
