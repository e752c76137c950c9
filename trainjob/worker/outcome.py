"""What rank 0 returns to the driver when its training ends."""

from trainjob.evaluation import Scores
from trainjob.schema.base import StrictModel


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
    validation: Scores
    """Scores of the best checkpoint."""
    test: Scores | None
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
