"""The JSON of `/predict`: what a model may be asked, and what it answers."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pydantic import BaseModel, Field

from trainjob.data import Preprocessor
from trainjob.kinds.inputs.questions import Row

MOST_ROWS = 1000
"""Rows of one request."""
MOST_PROBABILITIES = 1_000_000
"""Probabilities of one answer: with very many classes, a request may have fewer rows."""


class Prediction(BaseModel):
    """The model's answer to one row."""

    prediction: str = Field(description="The most probable class.")
    probability: float = Field(description="Its probability.")
    probabilities: dict[str, float] = Field(description="Of each class, the most probable first.")


class Predictions(BaseModel):
    """One prediction for each row, in the order of the rows."""

    predictions: list[Prediction]


class Refusal(BaseModel):
    """Why there are no predictions."""

    detail: str


def most_rows(preprocessor: Preprocessor) -> int:
    """Rows that a request may have."""
    return max(1, min(MOST_ROWS, MOST_PROBABILITIES // len(preprocessor.target.classes)))


def as_table(rows: Sequence[Row], columns: Sequence[str]) -> pa.Table:
    """The rows of one or more requests in the columns that a model's preprocessor takes."""
    cells = [row if isinstance(row, tuple) else (row,) for row in rows]
    kind = pa.binary() if rows and isinstance(rows[0], bytes) else pa.string()
    return pa.table(
        {
            name: pa.array([row[index] if index < len(row) else None for row in cells], kind)
            for index, name in enumerate(columns)
        }
    )


def predictions(probabilities: np.ndarray, classes: Sequence[str]) -> Predictions:
    """The answer where the rows have these probabilities [n, C]."""
    order = np.argsort(-probabilities, axis=1, kind="stable").tolist()
    shown = np.round(probabilities.astype(np.float64), 6).tolist()
    return Predictions.model_construct(
        predictions=[
            Prediction.model_construct(
                prediction=classes[best_first[0]],
                probability=row[best_first[0]],
                probabilities={classes[index]: row[index] for index in best_first},
            )
            for row, best_first in zip(shown, order, strict=True)
        ]
    )
