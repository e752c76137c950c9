"""How training ended, as the workers tell the driver."""

from trainjob.api.base import Spec
from trainjob.evaluation import Scores


class Outcome(Spec):
    """What rank 0 returns when training has come to its end."""

    best_checkpoint: str
    """Its name."""
    best_epoch: int
    """Epoch that it ends, from 1."""
    best_step: int
    """Optimizer steps taken by then."""
    best_value: float
    """The checkpoints' metric there."""
    validation: Scores
    """Scores of the best checkpoint."""
    test: Scores | None
    """Scores of the best checkpoint on the test set, where there is one."""
    epochs: int
    """Epochs completed."""
    stopped_early: bool
    """Whether early stopping ended training."""
    parameters: int
    """Of the model."""
    precision: str
    """bf16 or float32."""
    device: str
    """`cpu` or the GPU's name."""
    entered: float = 0.0
    """When the worker's function was entered, in seconds since 1970."""
    seconds: dict[str, float] = {}
    """Wall time by stage, over all attempts."""


class WorkerError(Exception):
    """A worker's exception in a form that travels between processes."""

    def __init__(self, rank: int, exception: str, message: str, traceback: str, time: float) -> None:
        super().__init__(rank, exception, message, traceback, time)
        self.rank, self.exception, self.message, self.traceback, self.time = rank, exception, message, traceback, time

    def __str__(self) -> str:
        return f"worker {self.rank} failed: {self.exception}: {self.message}"


def first_failure(errors: list[Exception]) -> Exception:
    """The error that came first: when one worker dies, the others fail because of it."""
    return min(errors, key=lambda error: error.time if isinstance(error, WorkerError) else 0.0)
