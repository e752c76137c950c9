"""How training ended, as the workers tell the driver and the driver tells everybody."""

import traceback as tracebacks

from trainjob.api.training_status import Failure
from trainjob.errors import UserError, is_transient
from trainjob.evaluation import AnyScores
from trainjob.redaction import without_secrets
from trainjob.schema.base import StrictModel
from trainjob.training.launch.ray_internals import has_died


class Outcome(StrictModel):
    """What rank 0 returns when training has come to its end."""

    best_checkpoint: str
    """Its name."""
    best_epoch: int
    """Epoch that it ends, from 1."""
    best_step: int
    """Optimizer steps taken by then."""
    best_value: float
    """The checkpoints' metric there."""
    validation: AnyScores
    """Scores of the best checkpoint."""
    test: AnyScores | None
    """Scores of the best checkpoint on the test set, where there is one."""
    epochs: int
    """Epochs completed."""
    steps: int
    """Optimizer steps taken."""
    stopped_early: bool
    """Whether early stopping ended training."""
    parameters: int
    """Of the model."""
    trained_parameters: int | None = None
    """Of these, those that training changes."""
    precision: str
    """bf16, fp16 or float32."""
    device: str
    """`cpu` or the GPU's name."""
    entered: float = 0.0
    """When the worker's function was entered, in seconds since 1970."""
    seconds: dict[str, float] = {}
    """Wall time by stage, over all attempts."""


class Stopped(StrictModel):
    """What rank 0 returns where training was told to stop: after a checkpoint, from which other workers go on."""

    leaving: list[str]
    """Ray's ids of the nodes that are about to go."""


class WorkerError(Exception):
    """A worker's exception in a form that travels between processes."""

    def __init__(self, rank: int, exception: str, message: str, traceback: str, time: float) -> None:
        message, traceback = without_secrets(message), without_secrets(traceback)
        super().__init__(rank, exception, message, traceback, time)
        self.rank, self.exception, self.message, self.traceback, self.time = rank, exception, message, traceback, time

    def __str__(self) -> str:
        return f"worker {self.rank} failed: {self.exception}: {self.message}"


def first_failure(errors: list[Exception]) -> Exception:
    """The error that came first: when one worker dies, the others fail because of it. A mistake of the user's, which
    will not pass, comes before all others."""
    return min(errors, key=lambda error: (is_transient(error), error.time if isinstance(error, WorkerError) else 0.0))


_ENDED = "its process ended unexpectedly; perhaps the system killed it for want of memory"
_OUT_OF_MEMORY = (
    "Ray ended its process because memory was running out: give it more (on a cluster, spec.workers.memory), "
    "or have it need less (spec.training.batchSize, spec.workers.count)"
)


def worker_error(rank: int, error: Exception) -> Exception:
    """What a worker on Ray raised; if it died without a word, Ray tells that it no longer answers."""
    if isinstance(error, UserError | WorkerError):
        return error
    if has_died(error):
        why = _OUT_OF_MEMORY if "running low on memory" in str(error) else _ENDED
        return WorkerError(rank, "WorkerDied", why, str(error), time=0.0)
    return WorkerError(rank, type(error).__name__, str(error), "", time=0.0)


def lost_a_worker(error: Exception) -> bool:
    """Whether a worker has died without a word, perhaps with its node, or lost its connection to one that has."""
    if not isinstance(error, WorkerError) or error.message == _OUT_OF_MEMORY:
        return False
    return error.exception == "WorkerDied" or error.exception.startswith("Dist") or "gloo" in error.message


def ran_out_of_memory(error: Exception) -> bool:
    """Whether a worker's machine had too little memory, as Python or Ray saw it, which it would have again."""
    return isinstance(error, WorkerError) and (error.exception == "MemoryError" or error.message == _OUT_OF_MEMORY)


def failure_of(error: Exception, retryable: bool) -> Failure:
    """What `status.training` says of an error that ends the driver."""
    if isinstance(error, WorkerError):
        rank, exception, message, trace = error.rank, error.exception, error.message, error.traceback
    else:
        rank, exception, message = None, type(error).__name__, without_secrets(str(error))
        trace = "" if isinstance(error, UserError) else without_secrets("".join(tracebacks.format_exception(error)))
    return Failure(rank=rank, exception=exception, message=message, traceback=trace, retryable=retryable)
