"""One rule in CEL, as the API server checks it."""

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
    """A condition on `self`, which is a TrainJob's spec or a model inside it."""

    cel: str
    """The expression."""
    message: str
    """The error message if it does not hold."""
    field: str = ""
    """Path of the wrong field, relative to `self`; empty for `self`."""

    def validation(self) -> dict[str, str | bool]:
        """The rule as an item of x-kubernetes-validations, evaluated at creation only unless it is about `oldSelf` or a
        field that may change: see docs/decisions/crd-rules-at-creation.md."""
        at = {"fieldPath": "".join(f".{name}" for name in self.field.split("."))} if self.field else {}
        if "oldSelf" in self.cel or any(f"self.{name}." in self.cel for name in MUTABLE_FIELDS):
            return {"rule": self.cel, "message": self.message, **at}
        return {"rule": f"oldSelf.hasValue() || ({self.cel})", "optionalOldSelf": True, "message": self.message, **at}
