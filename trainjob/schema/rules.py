"""Rules across the fields of a model, each written once: pydantic models check them here, and API servers in CEL."""

from collections.abc import Callable
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

    def conflict(self, part: Any) -> tuple[str, str] | None:
        """Field and message, if the condition does not hold."""
        if self.condition.of(part):
            return None
        return self.field, f"{self.message} ({self.details(part)})" if self.details is not None else self.message


class RuledModel(StrictModel):
    """A model whose fields must fit together."""

    @classmethod
    def rules(cls) -> tuple[FieldRule, ...]:
        return ()

    @model_validator(mode="after")
    def _fields_fit_together(self) -> Self:
        refuse_conflicts(found for rule in _rules_of(type(self)) if (found := rule.conflict(self)) is not None)
        return self


@cache
def _rules_of(model: type[RuledModel]) -> tuple[FieldRule, ...]:
    return model.rules()


def remainder(size: int, count: int) -> str:
    """Details of a rule that `size` is a multiple of `count`."""
    return f"{size} % {count} = {size % count}"
