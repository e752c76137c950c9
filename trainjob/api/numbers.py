"""Numbers that users report. They may be infinite or NaN, for which JSON has no numbers: it holds their names."""

import math
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AllowInfNan, PlainSerializer, WithJsonSchema

from trainjob.errors import listed

_NOT_FINITE = ("NaN", "Infinity", "-Infinity")


def to_json(value: Any) -> Any:
    """`NaN`, `Infinity` or `-Infinity` for a float that is not finite; all else as it is."""
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def from_json(value: Any) -> Any:
    """The float that `to_json` has given a name; all else as it is."""
    return float(value) if isinstance(value, str) and value in _NOT_FINITE else value


Number = Annotated[
    int | Annotated[float, AllowInfNan(True)],
    PlainSerializer(to_json, when_used="json"),
    WithJsonSchema({"type": "number"}),
]


def finite(values: Mapping[str, int | float]) -> dict[str, int | float]:
    return {name: value for name, value in values.items() if math.isfinite(value)}


def not_finite(values: Mapping[str, int | float]) -> str:
    """A message about the values that are NaN or infinite; empty where there are none."""
    return listed([f"{name} is {to_json(value)}" for name, value in values.items() if not math.isfinite(value)])
