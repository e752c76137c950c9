"""The TrainJob type: pydantic models, from which everything else is derived. Imports neither torch nor ray."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainjob.api.public_classes import *  # noqa: F403 - all of its __all__


def __getattr__(name: str) -> Any:
    """Imports the classes when the first one is used: a client that only reads a TrainJob's status starts sooner."""
    classes = import_module("trainjob.api.public_classes")
    if name in classes.__all__:
        return getattr(classes, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
