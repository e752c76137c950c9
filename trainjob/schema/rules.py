"""Rules across the fields of a model, each written once: pydantic models check them here, and API servers in CEL."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

from pydantic import model_validator

from trainjob.schema.base import StrictModel, refuse_conflicts
from trainjob.schema.expressions import Expression


@dataclass(frozen=True)
class FieldRule:
    """A condition on the fields of a model."""

    field: str
    """Path of the field to correct, relative to the model."""
    message: str
    """The error message."""
    condition: Expression
    details: Callable[[Any], str] | None = None
    """The values that break the rule, which API servers do not report."""

    def conflicts(self, part: Any) -> Iterator[tuple[str, str]]:
        """Field and message, if the condition does not hold."""
        if not self.condition.of(part):
            details = "" if self.details is None else f" ({self.details(part)})"
            yield self.field, f"{self.message}{details}"


@dataclass(frozen=True)
class RuleGroup:
    """Rules that apply only where a condition holds. It is evaluated once for all of them, which makes the rules of the
    kinds that a TrainJob does not have almost free."""

    when: Expression
    rules: "tuple[FieldRule | RuleGroup, ...]"

    def conflicts(self, part: Any) -> Iterator[tuple[str, str]]:
        """Field and message of each rule that applies and does not hold."""
        if self.when.of(part):
            for rule in self.rules:
                yield from rule.conflicts(part)


class RuledModel(StrictModel):
    """A model whose fields must fit together."""

    @classmethod
    def rules(cls) -> tuple[FieldRule | RuleGroup, ...]:
        return ()

    @model_validator(mode="after")
    def _fields_fit_together(self) -> Self:
        refuse_conflicts(found for rule in _rules_of(type(self)) for found in rule.conflicts(self))
        return self


@cache
def _rules_of(model: type[RuledModel]) -> tuple[FieldRule | RuleGroup, ...]:
    return model.rules()


def remainder(size: int, count: int) -> str:
    """Details of a rule that `size` is a multiple of `count`."""
    return f"{size} % {count} = {size % count}"
