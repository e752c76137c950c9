"""Errors that workers raise, as they travel to the driver, and how the driver classifies them."""

import time as clock
import traceback as tracebacks
from typing import Self

from trainjob.api.training_status import Failure
from trainjob.errors import UserError, is_transient
from trainjob.launch.fast.ray_internals import has_died
from trainjob.redaction import without_secrets

_DIED = "WorkerDied"
_ENDED = "its process ended unexpectedly; perhaps the system killed it because memory ran out"
_OUT_OF_MEMORY = (
    "Ray ended its process because memory was running out: give it more (on a cluster, spec.workers.memory), "
    "or have it need less (spec.training.batchSize, spec.workers.count)"
)


class WorkerError(Exception):
    """A worker's exception in a form that travels between processes."""

    def __init__(self, rank: int, exception: str, message: str, traceback: str, time: float) -> None:
        message, traceback = without_secrets(message), without_secrets(traceback)
        super().__init__(rank, exception, message, traceback, time)
        self.rank, self.exception, self.message, self.traceback, self.time = rank, exception, message, traceback, time

    @classmethod
    def caught(cls, rank: int, error: Exception) -> Self:
        """The error for an exception that a worker has just raised: its own type may not travel between processes."""
        trace = "".join(tracebacks.format_exception(error))
        return cls(rank, type(error).__name__, str(error), trace, clock.time())

    @classmethod
    def died(cls, rank: int, why: str, log: str) -> Self:
        """The error for a worker whose process ended unexpectedly."""
        return cls(rank, _DIED, why, log, time=0.0)

    def __str__(self) -> str:
        return f"worker {self.rank} failed: {self.exception}: {self.message}"


def first_failure(errors: list[Exception]) -> Exception:
    """The error to report when one worker fails and the others fail because of it. An error that is not transient, such
    as a mistake of the user's, comes before all others; the death of a worker before connections lost to it; otherwise
    the earliest comes first."""
    return min(errors, key=_order)


def _order(error: Exception) -> tuple[bool, bool, float]:
    is_death = isinstance(error, WorkerError) and error.exception == _DIED
    return is_transient(error), not is_death, error.time if isinstance(error, WorkerError) else 0.0


def worker_error(rank: int, error: Exception) -> Exception:
    """Converts the error that Ray Train reports for a worker."""
    if isinstance(error, UserError | WorkerError):
        return error
    if has_died(error):
        why = _OUT_OF_MEMORY if "running low on memory" in str(error) else _ENDED
        return WorkerError.died(rank, why, str(error))
    return WorkerError(rank, type(error).__name__, str(error), "", time=0.0)


def lost_a_worker(error: Exception) -> bool:
    """Whether a worker's process, or its node, has died, or a worker has lost its connection to one that died."""
    if not isinstance(error, WorkerError) or error.message == _OUT_OF_MEMORY:
        return False
    has_lost_connection = error.exception.startswith("Dist") or "gloo" in error.message  # such as DistBackendError
    return error.exception == _DIED or has_lost_connection


def ran_out_of_memory(error: Exception) -> bool:
    """Whether a worker's machine ran out of memory, as Python or Ray saw it. A retry would run out again."""
    return isinstance(error, WorkerError) and (error.exception == "MemoryError" or error.message == _OUT_OF_MEMORY)


def failure_of(error: Exception, retryable: bool) -> Failure:
    """The `failure` in `status.training` for an error that ends the driver."""
    if isinstance(error, WorkerError):
        rank, exception, message, trace = error.rank, error.exception, error.message, error.traceback
    else:
        rank, exception, message = None, type(error).__name__, without_secrets(str(error))
        trace = "" if isinstance(error, UserError) else without_secrets("".join(tracebacks.format_exception(error)))
    return Failure(rank=rank, exception=exception, message=message, traceback=trace, retryable=retryable)
