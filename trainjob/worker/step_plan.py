"""The numbers of steps and validations of a training."""

import sys
from dataclasses import dataclass
from math import ceil

from trainjob.api.training import Training


@dataclass(frozen=True)
class StepPlan:
    """The numbers of steps of a training that does not stop early."""

    steps_per_epoch: int
    steps: int
    """Optimizer steps of the whole training."""
    most_steps: int
    """`training.maxSteps`, or a number that is never reached."""
    validations: int
    log_every: int
    """Steps from one record of the training loss to the next."""

    @classmethod
    def of(cls, training: Training, batches_per_epoch: int) -> "StepPlan":
        steps_per_epoch = ceil(batches_per_epoch / training.gradient_accumulation)
        most_steps = training.max_steps or sys.maxsize
        steps = min(steps_per_epoch * training.epochs, most_steps)
        validations = ceil(steps / steps_per_epoch)
        if training.validate_every_steps is not None:
            validations += steps // training.validate_every_steps
        return cls(steps_per_epoch, steps, most_steps, validations, log_every=min(50, max(1, steps_per_epoch // 20)))
