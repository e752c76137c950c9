"""Numbers reported by users. They may be infinite or NaN, which JSON cannot represent; their names are stored
instead."""

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AllowInfNan, PlainSerializer, WithJsonSchema

from trainjob.errors import listed

_FACTORS = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1, "k": 1e3} | {
    unit + binary: (1024 if binary else 1000) ** power
    for power, unit in enumerate("KMGTPE", start=1)
    for binary in ("", "i")
}


def amount_of(quantity: str) -> float:
    """The number that Kubernetes writes as a quantity, such as `100m`, `1.5Gi` or `1e3`. Raises ValueError."""
    found = re.fullmatch(r"([0-9.]+(?:[eE][-+]?[0-9]+)?)([numkKMGTPE]?i?)", quantity)
    if found is None or found[2] not in _FACTORS:
        raise ValueError(f"{quantity!r} is not a quantity")
    return float(found[1]) * _FACTORS[found[2]]


_NOT_FINITE = ("NaN", "Infinity", "-Infinity")


def to_json(value: Any) -> Any:
    """`NaN`, `Infinity` or `-Infinity` for a non-finite float; other values unchanged."""
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def from_json(value: Any) -> Any:
    """The float for a name written by `to_json`; other values unchanged."""
    return float(value) if isinstance(value, str) and value in _NOT_FINITE else value


ReportedNumber = Annotated[
    int | Annotated[float, AllowInfNan(True)],
    PlainSerializer(to_json, when_used="json"),
    WithJsonSchema({"type": "number"}),
]


def finite(values: Mapping[str, int | float]) -> dict[str, int | float]:
    return {name: value for name, value in values.items() if math.isfinite(value)}


def not_finite(values: Mapping[str, int | float]) -> str:
    """A message about values that are NaN or infinite; empty if there are none."""
    return listed([f"{name} is {to_json(value)}" for name, value in values.items() if not math.isfinite(value)])
