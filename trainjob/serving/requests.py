"""The JSON of `/predict`: what a model may be asked, and what it answers."""

import base64
import binascii
import io
import json
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
from PIL import Image
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema, create_model, model_validator

from trainjob.data import Preprocessor
from trainjob.kinds.inputs.image import ImageInput

MOST_ROWS = 1000
"""Of one request."""
MOST_PROBABILITIES = 1_000_000
"""Of one answer: where there are very many classes, a request may have fewer rows."""
MOST_CHARACTERS = 100_000
"""Of one text: others wait while it is tokenized."""

Row = tuple[str | None, ...] | bytes
"""The model's text columns, or an image file's content."""


class Prediction(BaseModel):
    """What the model says of one row."""

    prediction: str = Field(description="The most probable class.")
    probability: float = Field(description="Its probability.")
    probabilities: dict[str, float] = Field(description="Of each class, the most probable first.")


class Predictions(BaseModel):
    """One prediction for each row, in the order of the rows."""

    predictions: list[Prediction]


class Refusal(BaseModel):
    """Why there are no predictions."""

    detail: str


class Images(BaseModel):
    """Image files, each in base64."""

    model_config = ConfigDict(extra="forbid")
    images: list[bytes]

    def as_rows(self) -> Sequence[Row]:
        return self.images


class Texts(BaseModel):
    """Either texts or rows of a table."""

    model_config = ConfigDict(extra="forbid")
    texts: list[str] | None
    rows: list[Any] | None

    def as_rows(self) -> Sequence[Row]:
        """A text goes into the first of the columns, which are joined anyway."""
        if self.texts is not None:
            return [(text,) for text in self.texts]
        return [tuple(vars(row).values()) for row in self.rows or ()]

    @model_validator(mode="after")
    def _is_one_of_them(self) -> "Texts":
        if (self.texts is None) == (self.rows is None):
            raise ValueError("give one of texts and rows")
        return self


def question_type(preprocessor: Preprocessor) -> type[Images] | type[Texts]:
    """The requests that a model takes: for texts, the rows of a table have the model's own columns."""
    limits: dict[str, Any] = {"min_length": 1, "max_length": most_rows(len(preprocessor.target.classes))}
    if preprocessor.input.noun == "image":
        return create_model("Images", __base__=Images, images=(list[_Image], Field(**limits)))
    columns: dict[str, Any] = {
        f"column_{index}": (_Cell, Field(alias=name)) for index, name in enumerate(preprocessor.input.columns)
    }
    row: Any = create_model("Row", __doc__="The model's columns; others are ignored.", **columns)
    choices: dict[str, Any] = {
        "texts": (list[_Text] | None, Field(None, **limits)),
        "rows": (list[row] | None, Field(None, **limits)),
    }
    return create_model("Texts", __base__=Texts, **choices)


def example(preprocessor: Preprocessor) -> dict[str, Any]:
    """A request that the model answers."""
    if isinstance(preprocessor.input, ImageInput):
        file = io.BytesIO()
        Image.new("L", (preprocessor.input.width, preprocessor.input.height)).save(file, "PNG")
        return {"images": [base64.b64encode(file.getvalue()).decode()]}
    if len(preprocessor.input.columns) == 1:
        return {"texts": ["a text", "another"]}
    return {"rows": [dict.fromkeys(preprocessor.input.columns, "a text")]}


def most_rows(classes: int) -> int:
    """Rows that a request may have where there are so many classes."""
    return max(1, min(MOST_ROWS, MOST_PROBABILITIES // classes))


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


def _text(text: str) -> str:
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"has {len(text):,} characters; at most {MOST_CHARACTERS:,} are taken")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("is no text: it has one half of a surrogate pair") from None
    return text


def _cell(value: Any) -> str | None:
    """A cell as text, spelled as in JSON, as the training rows of JSON Lines are."""
    if value is None:
        return None
    if isinstance(value, float) and not np.isfinite(value):
        raise ValueError("is no number that JSON knows; write null where a value is missing")
    if not isinstance(value, str | int | float):
        raise ValueError("must be a text, a number, true, false or null")
    return _text(value if isinstance(value, str) else json.dumps(value))


def _image(value: Any) -> bytes:
    if not isinstance(value, str):
        raise ValueError("must be an image file in base64")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("is not base64") from None


_Text = Annotated[str, AfterValidator(_text)]
_Cell = Annotated[Any, AfterValidator(_cell), WithJsonSchema({"type": ["string", "number", "boolean", "null"]})]
_Image = Annotated[Any, AfterValidator(_image), WithJsonSchema({"type": "string", "contentEncoding": "base64"})]
