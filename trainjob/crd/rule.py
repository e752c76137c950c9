"""Rules in CEL, as the API server checks them."""

from dataclasses import dataclass

from trainjob.api.trainjob import TrainJobSpec
from trainjob.schema.base import fields_of

MUTABLE_FIELDS = {
    "suspend",
    "cancel",
    "retries",
    "notify",
    "deadlines",
    "ttlAfterFinished",
    "rayJobTTLAfterFinished",
    "workers",
}
IMMUTABLE_FIELDS = {name: info for name, info in fields_of(TrainJobSpec).items() if name not in MUTABLE_FIELDS}


@dataclass(frozen=True)
class Rule:
    """A condition on `self`, which is a TrainJob's spec or a part of it."""

    cel: str
    """The expression."""
    message: str
    """The error message if it does not hold."""
    field: str = ""
    """Path of the wrong field, relative to `self`; empty for `self`."""

    @property
    def parts(self) -> "tuple[Rule, ...]":
        return (self,)

    def validation(self) -> dict[str, str | bool]:
        """The rule as an item of x-kubernetes-validations."""
        at = {"fieldPath": "".join(f".{name}" for name in self.field.split("."))} if self.field else {}
        return {**_at_creation(self.cel), "message": self.message, **at}


@dataclass(frozen=True)
class MergedRule:
    """Several rules on a TrainJob's spec in one expression. Each evaluation of a rule has a cost of its own, and API
    servers copy the schemas of all fields of an object to look one of them up."""

    cel: str
    """The expression, which holds if all parts do."""
    parts: tuple[Rule, ...]
    """Each rule by itself, for the error message, which lists all wrong fields: `fieldPath` cannot be computed."""

    def validation(self) -> dict[str, str | bool]:
        """The rule as an item of x-kubernetes-validations."""
        messages = (f"({rule.cel} ? '' : {_quoted(f'; spec.{rule.field}: {rule.message}')})" for rule in self.parts)
        # not `.join('; ')`, whose cost API servers take for unlimited
        return {**_at_creation(self.cel), "messageExpression": f"({' + '.join(messages)}).substring(2)"}


def _at_creation(cel: str) -> dict[str, str | bool]:
    """A rule that is evaluated at creation only unless it is about `oldSelf`, a field that may change, or a value by
    itself: see docs/decisions/crd-rules-at-creation.md."""
    if "oldSelf" in cel or any(f"self.{name}." in cel for name in MUTABLE_FIELDS) or "self." not in cel:
        return {"rule": cel}
    return {"rule": f"oldSelf.hasValue() || ({cel})", "optionalOldSelf": True}


def _quoted(text: str) -> str:
    """A text as a literal in CEL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
