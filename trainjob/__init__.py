"""Train a model from one YAML file, on this machine or on a Kubernetes cluster."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainjob.client.async_jobs import AsyncClient, AsyncJob
    from trainjob.client.jobs import Client, Job
    from trainjob.client.runs import Run, run
    from trainjob.generator import TextGenerator
    from trainjob.predictor import Predictor

    __version__: str

_MODULES = {
    "AsyncClient": "trainjob.client.async_jobs",
    "AsyncJob": "trainjob.client.async_jobs",
    "Client": "trainjob.client.jobs",
    "Job": "trainjob.client.jobs",
    "Predictor": "trainjob.predictor",
    "Run": "trainjob.client.runs",
    "TextGenerator": "trainjob.generator",
    "run": "trainjob.client.runs",
}

__all__ = ["AsyncClient", "AsyncJob", "Client", "Job", "Predictor", "Run", "TextGenerator", "__version__", "run"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Imports what `trainjob` offers when it is first used: the command line must start at once."""
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    if name == "__version__":
        from importlib.metadata import version

        return version("trainjob")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
