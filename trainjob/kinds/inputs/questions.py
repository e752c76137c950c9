"""The JSON of rows in requests to `trainjob serve`."""

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Protocol

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    create_model,
    model_validator,
)
from pydantic_core import PydanticCustomError

MAX_CHARACTERS = 100_000
"""The longest text: others wait while it is tokenized."""

Row = tuple[str | None, ...] | bytes
"""The model's text columns, or an image file's content."""


class Question(Protocol):
    """A request."""

    @property
    def field(self) -> str:
        """The name of the list of rows."""
        ...

    def as_rows(self) -> Sequence[Row]: ...


class Images(BaseModel):
    """Image files, each in base64."""

    model_config = ConfigDict(extra="forbid")
    images: list[bytes]

    @property
    def field(self) -> str:
        return "images"

    def as_rows(self) -> Sequence[Row]:
        return self.images


class Texts(BaseModel):
    """Either texts or rows of a table."""

    model_config = ConfigDict(extra="forbid")
    texts: list[Any] | None
    rows: list[Any] | None
    gap: ClassVar[int] = 0
    """The number of columns between the first ones of the two texts of a pair."""

    @property
    def field(self) -> str:
        return "rows" if self.texts is None else "texts"

    def as_rows(self) -> Sequence[Row]:
        """Puts a text into the first of its columns: the model joins them anyway."""
        if self.texts is not None:
            return [(text,) if isinstance(text, str) else (text[0], *[None] * self.gap, text[1]) for text in self.texts]
        return [tuple(vars(row).values()) for row in self.rows or ()]

    @model_validator(mode="after")
    def _is_one_of_them(self) -> "Texts":
        if (self.texts is None) == (self.rows is None):
            raise PydanticCustomError("structure", "send either texts or rows")
        return self


class TableRows(BaseModel):
    """Rows of a table."""

    model_config = ConfigDict(extra="forbid")
    rows: list[Any]

    @property
    def field(self) -> str:
        return "rows"

    def as_rows(self) -> Sequence[Row]:
        return [tuple(vars(row).values()) for row in self.rows]


def image_question(most_rows: int) -> type[Images]:
    """Requests with up to `most_rows` images."""
    limits: dict[str, Any] = {"min_length": 1, "max_length": most_rows}
    return create_model("Images", __base__=Images, images=(list[_Image], Field(**limits)))


def text_question(names: Sequence[str], most_rows: int, pair: Sequence[str] = ()) -> type[Texts]:
    """Requests with up to `most_rows` texts, or rows of a table with these columns; with pairs of texts if some of them
    are the columns of the second text of a `pair`."""
    limits: dict[str, Any] = {"min_length": 1, "max_length": most_rows}
    row, text = _row(names), _Pair if pair else _Text
    choices: dict[str, Any] = {
        "texts": (list[text] | None, Field(None, **limits)),
        "rows": (list[row] | None, Field(None, **limits)),
    }
    question = create_model("Texts", __base__=Texts, **choices)
    question.gap = names.index(pair[0]) - 1 if pair else 0
    return question


def row_question(names: Sequence[str], most_rows: int) -> type[TableRows]:
    """Requests with up to `most_rows` rows of a table with these columns."""
    row = _row(names)
    rows: Any = (list[row], Field(min_length=1, max_length=most_rows))
    return create_model("TableRows", __base__=TableRows, rows=rows)


def _row(names: Sequence[str]) -> Any:
    columns: dict[str, Any] = {f"column_{index}": (_Cell, Field(alias=name)) for index, name in enumerate(names)}
    return create_model("Row", __doc__="The model's columns; others are ignored.", **columns)


def text_example(names: Sequence[str]) -> dict[str, Any]:
    """A request for a model with these columns."""
    if len(names) == 1:
        return {"texts": ["a text", "another"]}
    return {"rows": [dict.fromkeys(names, "a text")]}


def _text(text: str) -> str:
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"has {len(text):,} characters: shorten it to {MAX_CHARACTERS:,}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("is not valid text: it has half of a surrogate pair; leave that out") from None
    return text


def _cell(value: Any) -> str | None:
    """A cell as text, in JSON's spelling, which training rows of JSON Lines have, too."""
    if value is None:
        return None
    if isinstance(value, float) and not np.isfinite(value):
        raise ValueError("is not a JSON number; write null for a missing value")
    if not isinstance(value, str | int | float):
        raise ValueError("must be text, a number, true, false or null")
    return _text(value if isinstance(value, str) else json.dumps(value))


def _two(value: Any) -> Any:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError('must be a pair of texts, such as ["a text", "another"]')
    return value


def _image(value: Any) -> bytes:
    if not isinstance(value, str):
        raise ValueError("must be an image file in base64")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("is not base64: encode the content of the image file") from None


_Text = Annotated[str, AfterValidator(_text)]
_Pair = Annotated[tuple[_Text, _Text], BeforeValidator(_two)]
_Cell = Annotated[Any, AfterValidator(_cell), WithJsonSchema({"type": ["string", "number", "boolean", "null"]})]
_Image = Annotated[Any, AfterValidator(_image), WithJsonSchema({"type": "string", "contentEncoding": "base64"})]
