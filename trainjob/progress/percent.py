"""How much of a whole run is done."""

from dataclasses import dataclass

TRAINING_COST = 3
"""What a row costs to train on, in rows that are only scored: the backward pass takes twice as long as the forward
pass."""
MOST = 99.9
"""Until the run has finished."""


@dataclass(frozen=True)
class Amount:
    """The work of a run, in rows that are scored."""

    training: float = 1.0
    """All steps."""
    validation: float = 0.0
    """All validations."""
    final: float = 0.0
    """The last scores of the best checkpoint."""

    def percent(self, trained: float, validated: float, scored: float) -> float:
        """From the share of each that is done, 0 to 1."""
        done = trained * self.training + validated * self.validation + scored * self.final
        total = self.training + self.validation + self.final
        return round(min(MOST, 100 * done / total), 1)


def amount(rows: int, epochs: float, validation_rows: int, validations: int, final_rows: int) -> Amount:
    """Of `rows` that are trained on for so many epochs, so many validations, and the rows that are scored last."""
    return Amount(TRAINING_COST * rows * epochs, validation_rows * validations, final_rows)
