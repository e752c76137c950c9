"""Field types for several sections of a TrainJob."""

from collections import Counter
from typing import Annotated, TypeVar

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from trainjob.redaction import without_secrets
from trainjob.schema.uris import MODEL

Item = TypeVar("Item")


def _refuse_duplicates(items: list[Item]) -> list[Item]:
    if twice := [item for item, count in Counter(items).items() if count > 1]:
        raise PydanticCustomError("twice", "names {item} twice", {"item": without_secrets(str(twice[0]))})
    return items


UniqueList = Annotated[
    list[Item], Field(min_length=1, json_schema_extra={"uniqueItems": True}), AfterValidator(_refuse_duplicates)
]
"""A list with at least one item and no item twice."""
PositiveInt = Annotated[int, Field(ge=1)]
Dropout = Annotated[float, Field(ge=0, lt=1)]
LAYER_NAME = r"^[A-Za-z0-9_.]+$"
LayerName = Annotated[str, Field(min_length=1, max_length=253, pattern=LAYER_NAME)]
Pretrained = Annotated[str, Field(min_length=1, pattern=MODEL)]
