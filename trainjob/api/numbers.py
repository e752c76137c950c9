"""Numbers reported by users. They may be infinite or NaN, which JSON cannot represent; their names are stored
instead."""

import math
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AllowInfNan, PlainSerializer, WithJsonSchema

from trainjob.errors import listed

_NOT_FINITE = ("NaN", "Infinity", "-Infinity")


def to_json(value: Any) -> Any:
    """`NaN`, `Infinity` or `-Infinity` for a non-finite float; other values unchanged."""
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def from_json(value: Any) -> Any:
    """The float for a name written by `to_json`; other values unchanged."""
    return float(value) if isinstance(value, str) and value in _NOT_FINITE else value


Number = Annotated[
    int | Annotated[float, AllowInfNan(True)],
    PlainSerializer(to_json, when_used="json"),
    WithJsonSchema({"type": "number"}),
]


def finite(values: Mapping[str, int | float]) -> dict[str, int | float]:
    return {name: value for name, value in values.items() if math.isfinite(value)}


def not_finite(values: Mapping[str, int | float]) -> str:
    """A message about values that are NaN or infinite; empty if there are none."""
    return listed([f"{name} is {to_json(value)}" for name, value in values.items() if not math.isfinite(value)])
