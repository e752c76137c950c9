"""The results that rank 0 returns to the driver."""

from trainjob.evaluation import Scores
from trainjob.schema.base import StrictModel


class Outcome(StrictModel):
    """The result of rank 0 when training has ended."""

    best_checkpoint: str
    """The name of the best checkpoint."""
    best_epoch: int
    """The epoch that ends with it, from 1."""
    best_step: int
    """Optimizer steps taken by then."""
    best_value: float
    """Its value of the checkpoints' metric."""
    validation: Scores
    """Scores of the best checkpoint."""
    test: Scores | None
    """Scores of the best checkpoint on the test set, if there is one."""
    epochs: int
    """Epochs completed."""
    steps: int
    """Optimizer steps taken."""
    stopped_early: bool
    """Whether early stopping ended training."""
    parameters: int
    """Number of the model's parameters."""
    trained_parameters: int | None = None
    """Number of the parameters that training changes."""
    precision: str
    """bf16, fp16 or float32, as used."""
    device: str
    """`cpu` or the GPU's name."""
    entered: float = 0.0
    """Time at which the worker began, in seconds since 1970."""
    seconds: dict[str, float] = {}
    """Wall time by stage, over all attempts."""


class Stopped(StrictModel):
    """The result of rank 0 if training was told to stop. It has saved a checkpoint, from which other workers
    continue."""

    leaving: list[str]
    """Ray's ids of the nodes that are about to go."""
