"""Rules of a whole spec that only API servers check: which fields cannot change, and the choices in lists."""

from pydantic.fields import FieldInfo

from trainjob.api.notify import Receiver
from trainjob.api.spec_rules import IMMUTABLE
from trainjob.api.tracking import Tracker
from trainjob.crd.rule import IMMUTABLE_FIELDS, Rule
from trainjob.schema.base import OneOf, nested_model
from trainjob.schema.expressions import escaped

ITEMS: dict[str, type[OneOf]] = {"tracking": Tracker, "notify": Receiver}
"""Choices in lists, by field: rules of items cannot use `oldSelf`, so these are rules of the spec."""


def _same_presence(field: str) -> Rule:
    """A field without a default may be neither added nor removed, which a rule of the field's own model cannot see."""
    return Rule(f"has(self.{field}) == has(oldSelf.{field})", IMMUTABLE, field)


def _is_value(field: str, info: FieldInfo) -> bool:
    """Whether a field has no model of its own whose rules could compare it, or is a list."""
    return field in ITEMS or nested_model(info.annotation) is None


def _same_value(field: str) -> Rule:
    return Rule(f"!has(self.{field}) || !has(oldSelf.{field}) || self.{field} == oldSelf.{field}", IMMUTABLE, field)


def exactly_one(model: type[OneOf], parent: str) -> str:
    """In CEL, whether exactly one choice of `parent`, an object of this model, is set."""
    choices = ", ".join(f"has({parent}.{escaped(model.in_yaml(name))})" for name in model.choice_fields())
    return f"[{choices}].exists_one(given, given)"


CHANGE_RULES: tuple[Rule, ...] = (
    *(_same_presence(name) for name, info in IMMUTABLE_FIELDS.items() if info.default is None or name in ITEMS),
    *(_same_value(name) for name, info in IMMUTABLE_FIELDS.items() if _is_value(name, info)),
    *(
        Rule(
            f"!has(self.{field}) || self.{field}.all(one, {exactly_one(model, 'one')})",
            f"set exactly one of {', '.join(map(model.in_yaml, model.choice_fields()))} in each item",
            field,
        )
        for field, model in ITEMS.items()
    ),
)
