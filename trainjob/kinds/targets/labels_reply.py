"""The reply to one row of a model that gives rows any number of labels."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from pydantic import Field

from trainjob.kinds.reply import Reply
from trainjob.kinds.targets.class_reply import DIGITS


class LabelsReply(Reply):
    """The model's answer to one row."""

    headings: ClassVar[tuple[str, ...]] = ("label", "probability", "threshold", "given")

    prediction: list[str] = Field(description="The labels whose probability reaches their threshold; may be empty.")
    probabilities: dict[str, float] = Field(description="Of each label, the most probable first.")
    thresholds: dict[str, float] = Field(description="The threshold of each label.")

    def lines(self, text: str) -> list[tuple[str, ...]]:
        return [
            (name, f"{probability:.4f}", f"{self.thresholds[name]:.4f}", "yes" if name in self.prediction else "")
            for name, probability in self.probabilities.items()
        ]


def labels_replies(
    probabilities: np.ndarray, given: np.ndarray, names: Sequence[str], thresholds: Sequence[float]
) -> list[LabelsReply]:
    """The replies to rows with these probabilities [n, L], which get the labels `given`, bool [n, L]."""
    order = np.argsort(-probabilities, axis=1, kind="stable").tolist()
    shown = np.round(probabilities.astype(np.float64), DIGITS).tolist()
    return [
        LabelsReply.model_construct(
            prediction=[name for name, is_given in zip(names, gets, strict=True) if is_given],
            probabilities={names[index]: row[index] for index in best_first},
            thresholds={names[index]: thresholds[index] for index in best_first},
        )
        for row, gets, best_first in zip(shown, given.tolist(), order, strict=True)
    ]
