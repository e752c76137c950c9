"""Finds the code of a kind of model, which is imported when it is first needed."""

from importlib import import_module
from typing import TYPE_CHECKING

from trainjob.kinds import PACKAGES

if TYPE_CHECKING:
    from trainjob.kinds.kind import Kind


def load_kind(field: str) -> "Kind":
    """The kind whose field in `spec.model` is `field`: `KIND` of the module `kind` beside its spec. A function has
    none: the user writes its code."""
    return import_module(f"{PACKAGES[field]}.kind").KIND
