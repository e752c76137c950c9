"""When training is tried again after a failure: one rule for local workers, Ray and the driver itself."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from trainjob.api import TrainJob, Workers
from trainjob.errors import StorageError, StorageUnreachable, TransientError, is_transient
from trainjob.launch.ray_cluster import is_elastic
from trainjob.launch.worker_errors import WorkerError, lost_a_worker
from trainjob.runs.files import CHECKPOINTS
from trainjob.runs.folder import Attempts, count_failure
from trainjob.storage import Folder

Result = TypeVar("Result")

_NOWHERE = "nowhere"
"""How far training has come before its first loss of a worker: no checkpoint's name."""


def may_retry(error: Exception, failures: int, retries: int) -> bool:
    """Whether to try again after so many failures, this one among them. A mistake of the user's is not tried again."""
    return is_transient(error) and failures <= retries


def earlier_failures(job: TrainJob, attempts: Attempts) -> int:
    """Failures that count against `spec.retries`; on a laptop, where each command is the user's own decision, none."""
    return attempts.failures if _is_counted(job) else 0


def with_retries(
    train: Callable[[], Result],
    job: TrainJob,
    run: Folder,
    attempts: Attempts,
    on_retry: Callable[[Exception], None],
    retries: Callable[[], int],
) -> Result:
    """Calls `train`, again and again while workers fail and `retries`, which may change meanwhile, allows it; before
    each retry, `on_retry`.

    Losses of workers count as no failure of an elastic job, up to as many as it can spare between two checkpoints.
    """
    failures, losses, reached = earlier_failures(job, attempts), 0, _NOWHERE
    while True:
        try:
            return train()
        except (WorkerError, TransientError) as error:
            if is_elastic(job.spec) and lost_a_worker(error):
                before, reached = reached, _newest_checkpoint(run)
                losses = losses + 1 if reached == before else 1
                if losses <= _spare(job.spec.workers):
                    on_retry(error)
                    continue
            failures += 1
            if not may_retry(error, failures, retries()):
                raise
            if _is_counted(job):
                with suppress(StorageError):  # it then stays uncounted
                    count_failure(run)
            on_retry(error)


def _spare(workers: Workers) -> int:
    """How many losses, of one worker each, lead to fewer workers than the minimum."""
    return workers.count - (workers.minimum or workers.count) + 1


def _newest_checkpoint(run: Folder) -> str:
    """Its name; of a function it is Ray Train's. _NOWHERE where it cannot be read."""
    with suppress(StorageError):
        own = run.list(CHECKPOINTS)
        return max(own or [name for name in run.list() if name.startswith("checkpoint_")], default="")
    return _NOWHERE


def is_retryable(job: TrainJob, run: Folder, error: Exception, retries: int) -> bool:
    """Whether another attempt may end better than the driver's, which `error` has ended, and is still allowed.

    On a cluster this counts the failure in the run's folder `run`, for the next driver to know.
    """
    if not _is_counted(job) or isinstance(error, StorageUnreachable):
        return is_transient(error)
    try:
        return may_retry(error, count_failure(run), retries)
    except StorageError:  # uncounted: the cluster counts attempts, too
        return is_transient(error)


def _is_counted(job: TrainJob) -> bool:
    """On a cluster, failures count over all drivers."""
    return job.metadata.uid is not None
