"""Expressions on a TrainJob's spec or a section of it, written once: evaluated here on pydantic models, and by API
servers in CEL.

A field is named by its YAML path, relative to the spec or the section. A `?` follows each parent that may be missing:
`dataset?.label`. All other parents have defaults, which API servers fill in.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, reduce
from operator import and_, or_
from typing import Any

from trainjob.schema.base import StrictModel, fields_of

_RESERVED = {"break", "const", "continue", "else", "for", "function", "if", "import", "in", "let", "loop", "package"}


@dataclass(frozen=True)
class Expression:
    """A value computed from a spec or a section of it."""

    cel: str
    of: Callable[[Any], Any]
    """The same, computed from the pydantic model."""

    def __and__(self, other: "Expression") -> "Expression":
        return Expression(f"({self.cel} && {other.cel})", lambda spec: self.of(spec) and other.of(spec))

    def __or__(self, other: "Expression") -> "Expression":
        return Expression(f"({self.cel} || {other.cel})", lambda spec: self.of(spec) or other.of(spec))

    def __invert__(self) -> "Expression":
        return Expression(f"!{self.cel}", lambda spec: not self.of(spec))

    def __le__(self, other: "Expression") -> "Expression":
        return Expression(f"({self.cel} <= {other.cel})", lambda spec: self.of(spec) <= other.of(spec))

    def __mul__(self, factor: int) -> "Expression":
        return Expression(f"({factor} * {self.cel})", lambda spec: factor * self.of(spec))

    def is_positive(self) -> "Expression":
        return Expression(f"({self.cel} > 0.0)", lambda spec: self.of(spec) > 0)

    def is_one_of(self, *values: str) -> "Expression":
        listed = ", ".join(map(repr, values))
        return Expression(f"({self.cel} in [{listed}])", lambda spec: self.of(spec) in values)

    def equals(self, other: "Expression") -> "Expression":
        return Expression(f"({self.cel} == {other.cel})", lambda spec: self.of(spec) == other.of(spec))

    def contains(self, item: "Expression") -> "Expression":
        """Whether a list has an item, or a mapping a key."""
        return Expression(f"({item.cel} in {self.cel})", lambda spec: item.of(spec) in self.of(spec))

    def is_disjoint_from(self, other: "Expression") -> "Expression":
        """Whether two lists of unique items have no item in common. API servers add such lists as sets, which costs
        less than to compare their items."""
        size = f"{self.cel}.size() + {other.cel}.size()"
        cel = f"(({self.cel} + {other.cel}).size() == {size})"
        return Expression(cel, lambda spec: set(self.of(spec)).isdisjoint(other.of(spec)))

    def is_ascending_pair(self) -> "Expression":
        """Whether the first of two numbers is less than the second. API servers also evaluate this for other lists."""
        cel = f"(size({self.cel}) != 2 || {self.cel}[0] < {self.cel}[1])"
        return Expression(cel, lambda spec: self.of(spec)[0] < self.of(spec)[1])

    def is_multiple_of(self, other: "Expression") -> "Expression":
        """API servers also evaluate this if a number is below its minimum."""
        cel = f"({other.cel} < 1 || {self.cel} % {other.cel} == 0)"
        return Expression(cel, lambda spec: self.of(spec) % other.of(spec) == 0)


def number(constant: float) -> Expression:
    return Expression(repr(constant), lambda _: constant)


def value(path: str) -> Expression:
    """The value of a field, which must be set."""
    steps = path.split(".")
    return Expression(_cel_path(steps), lambda spec: _part(spec, steps))


def setting(model: type[StrictModel], field: str) -> Expression:
    """The value of a field of `model`, or its default, in a section that may be written as `{}`."""
    return Expression(value_or_default(model, field), value(field).of)


def given(path: str) -> Expression:
    """Whether a field and each parent that may be missing are in the document. API servers fill in none of them."""
    steps = path.split(".")
    optional = [steps[: depth + 1] for depth, step in enumerate(steps) if step.endswith("?")]
    chain = " && ".join(f"has({_cel_path(found)})" for found in [*optional, steps])
    fields = [*((step.removesuffix("?"), step.endswith("?")) for step in steps[:-1]), (steps[-1], True)]

    def is_given(spec: Any) -> bool:
        part = spec
        for field, must_be_set in fields:
            name = attribute_of(part, field)
            if (value := getattr(part, name)) is None or (must_be_set and name not in part.model_fields_set):
                return False
            part = value
        return True

    return Expression(f"({chain})" if optional else chain, is_given)


def any_of(*conditions: Expression) -> Expression:
    return reduce(or_, conditions)


def all_of(*conditions: Expression) -> Expression:
    return reduce(and_, conditions)


def escaped(field: str) -> str:
    """A field's name in CEL, with reserved words escaped."""
    return f"__{field}__" if field in _RESERVED else field.replace(".", "__dot__")


def value_or_default(model: type[StrictModel], field: str, parent: str = "self") -> str:
    """In CEL, the value of a field of `parent`, or its default, because API servers fill in no defaults inside objects
    that may be written as `{}`."""
    default = fields_of(model)[field].default
    written = str(default).lower() if isinstance(default, bool) else default
    return f"(has({parent}.{field}) ? {parent}.{field} : {written})"


def attribute_of(part: StrictModel, field: str) -> str:
    """The attribute for a YAML `field`."""
    return _attributes(type(part)).get(field, field)


@cache
def _attributes(model: type[StrictModel]) -> dict[str, str]:
    """The attribute of each field by the field's name in YAML."""
    return {info.alias or name: name for name, info in model.model_fields.items()}


def _cel_path(steps: list[str]) -> str:
    return ".".join(["self", *(escaped(step.removesuffix("?")) for step in steps)])


def _part(spec: Any, steps: list[str]) -> Any:
    """The value at a path; None if a parent is missing."""
    for step in steps:
        if spec is None:
            return None
        spec = getattr(spec, attribute_of(spec, step.removesuffix("?")))
    return spec
