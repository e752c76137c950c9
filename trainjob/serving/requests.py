"""The JSON of `/predict`: requests and responses."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pydantic import BaseModel, create_model

from trainjob.data import Preprocessor
from trainjob.kinds.inputs.questions import Row
from trainjob.kinds.reply import Reply

MAX_ROWS = 1000
"""Largest number of rows in one request."""
MAX_NUMBERS = 1_000_000
"""Largest number of probabilities in one answer: with very many classes, a request may have fewer rows."""


class Refusal(BaseModel):
    """The body of an answer without predictions."""

    detail: str
    """The reason."""


def most_rows(preprocessor: Preprocessor) -> int:
    """The largest number of rows that a request may have."""
    return max(1, min(MAX_ROWS, MAX_NUMBERS // preprocessor.target.width))


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


def predictions_type(reply: type[Reply]) -> type[BaseModel]:
    """The type of an answer, with a reply for each row of the request."""
    row: Any = reply
    return create_model(
        "Predictions", __doc__="One prediction for each row, in the order of the rows.", predictions=(list[row], ...)
    )
