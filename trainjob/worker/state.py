"""How far training has come."""

from dataclasses import dataclass, field


@dataclass
class TrainingState:
    """How far training has come; saved in each checkpoint."""

    epoch: int = 0
    """Epochs completed."""
    batch: int = 0
    """Batches of the current epoch taken, on each rank."""
    step: int = 0
    """Optimizer steps taken."""
    loss_sum: float = 0.0
    """Training losses of the current epoch, over all ranks."""
    weight: float = 0.0
    """The weight of these losses."""
    best: float | None = None
    """The checkpoints' metric at its best."""
    validations_since_best: int = 0
    stopped_early: bool = False
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall time by stage, over all attempts."""
