"""Rules of a whole spec in CEL: those that only API servers check, and groups of rules in one expression."""

from collections.abc import Iterator
from dataclasses import replace

from pydantic.fields import FieldInfo

from trainjob.api.notify import Receiver
from trainjob.api.spec_rules import IMMUTABLE
from trainjob.api.tracking import Tracker
from trainjob.crd.rule import IMMUTABLE_FIELDS, MergedRule, Rule
from trainjob.schema.base import OneOf, nested_model
from trainjob.schema.expressions import escaped
from trainjob.schema.rules import FieldRule, RuleGroup

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


def grouped(group: RuleGroup) -> MergedRule:
    """A group of rules in one expression."""
    return MergedRule(_condition(group), tuple(found for rule in group.rules for found in _parts(rule)))


def _condition(rule: FieldRule | RuleGroup) -> str:
    if isinstance(rule, FieldRule):
        return rule.condition.cel
    return f"(!{rule.when.cel} || ({' && '.join(map(_condition, rule.rules))}))"


def _parts(rule: FieldRule | RuleGroup) -> Iterator[Rule]:
    """Each rule of a group by itself."""
    if isinstance(rule, FieldRule):
        yield Rule(rule.condition.cel, rule.message, rule.field)
        return
    for inner in rule.rules:
        for part in _parts(inner):
            yield replace(part, cel=f"!{rule.when.cel} || {part.cel}")


_UNCHANGED = (
    *(_same_presence(name) for name, info in IMMUTABLE_FIELDS.items() if info.default is None or name in ITEMS),
    *(_same_value(name) for name, info in IMMUTABLE_FIELDS.items() if _is_value(name, info)),
)
CHANGE_RULES: tuple[Rule | MergedRule, ...] = (
    MergedRule(" && ".join(f"({rule.cel})" for rule in _UNCHANGED), _UNCHANGED),
    *(
        Rule(
            f"!has(self.{field}) || self.{field}.all(one, {exactly_one(model, 'one')})",
            f"set exactly one of {', '.join(map(model.in_yaml, model.choice_fields()))} in each item",
            field,
        )
        for field, model in ITEMS.items()
    ),
)
