"""The reply of a classifier to one row."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from pydantic import Field

from trainjob.kinds.reply import Reply

DIGITS = 6
"""Decimals of a probability."""


class Prediction(Reply):
    """The model's answer to one row."""

    headings: ClassVar[tuple[str, ...]] = ("class", "probability")

    prediction: str = Field(description="The most probable class.")
    probability: float = Field(description="Its probability.")
    probabilities: dict[str, float] = Field(description="Of each class, the most probable first.")

    def lines(self, text: str) -> list[tuple[str, ...]]:
        return [(name, f"{probability:.4f}") for name, probability in self.probabilities.items()]


def class_replies(probabilities: np.ndarray, classes: Sequence[str]) -> list[Prediction]:
    """The replies to rows with these probabilities [n, C]."""
    order = np.argsort(-probabilities, axis=1, kind="stable").tolist()
    shown = np.round(probabilities.astype(np.float64), DIGITS).tolist()
    return [
        Prediction.model_construct(
            prediction=classes[best_first[0]],
            probability=row[best_first[0]],
            probabilities={classes[index]: row[index] for index in best_first},
        )
        for row, best_first in zip(shown, order, strict=True)
    ]
