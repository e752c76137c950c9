"""The rules of a whole spec: those of `trainjob.api`, and which fields cannot change."""

from trainjob.api.spec_rules import IMMUTABLE, SPEC_RULES
from trainjob.crd.rule import IMMUTABLE_FIELDS, Rule


def _same_presence(field: str) -> Rule:
    """A field without a default may be neither added nor removed, which a rule of the field's own model cannot see."""
    return Rule(f"has(self.{field}) == has(oldSelf.{field})", IMMUTABLE, field)


RULES_OF_SPEC: tuple[Rule, ...] = (
    *(_same_presence(name) for name, info in IMMUTABLE_FIELDS.items() if info.default is None),
    *(Rule(rule.condition.cel, rule.message, rule.field) for rule in SPEC_RULES),
)
