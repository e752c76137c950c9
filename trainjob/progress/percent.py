"""Computes the percentage of a whole run that is done."""

from dataclasses import dataclass

TRAINING_COST = 3
"""Cost of training on a row relative to scoring it: the backward pass takes twice as long as the forward pass."""
MAX_UNFINISHED = 99.9
"""Largest percentage before the run has finished."""


@dataclass(frozen=True)
class Workload:
    """The work of a run, in units of one scored row."""

    training: float = 1.0
    """The work of all steps."""
    validation: float = 0.0
    """The work of all validations."""
    final: float = 0.0
    """The final scoring of the best checkpoint."""

    def percent(self, trained: float, validated: float, scored: float) -> float:
        """The percentage done, from the fractions done of each part, 0 to 1."""
        done = trained * self.training + validated * self.validation + scored * self.final
        total = self.training + self.validation + self.final
        return round(min(MAX_UNFINISHED, 100 * done / total), 1)


def workload(rows: int, epochs: float, validation_rows: int, validations: int, final_rows: int) -> Workload:
    """The workload of `epochs` over `rows` training rows, the validations, and the final scoring."""
    return Workload(TRAINING_COST * rows * epochs, validation_rows * validations, final_rows)
