"""Field types for several kinds of model."""

from typing import Annotated

from pydantic import Field

from trainjob.schema.uris import MODEL

PositiveInt = Annotated[int, Field(ge=1)]
Dropout = Annotated[float, Field(ge=0, lt=1)]
LAYER_NAME = r"^[A-Za-z0-9_.]+$"
LayerName = Annotated[str, Field(min_length=1, max_length=253, pattern=LAYER_NAME)]
Pretrained = Annotated[str, Field(min_length=1, pattern=MODEL)]
