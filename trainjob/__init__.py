"""Train a model from one YAML file, on this machine or on a Kubernetes cluster."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainjob.generator import TextGenerator
    from trainjob.predictor import Predictor

    __version__: str

__all__ = ["Predictor", "TextGenerator", "__version__"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Imports what `trainjob` offers when it is first used: the command line must start at once."""
    if name == "Predictor":
        from trainjob.predictor import Predictor

        return Predictor
    if name == "TextGenerator":
        from trainjob.generator import TextGenerator

        return TextGenerator
    if name == "__version__":
        from importlib.metadata import version

        return version("trainjob")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
