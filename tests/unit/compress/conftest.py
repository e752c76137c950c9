"""Sets that runs are written on, and runs that were compressed."""

from pathlib import Path

import pytest
from compress_runs import train_job, write_run

from tiny_sets import write_digits, write_texts
from trainjob.compress import measure
from trainjob.compress.variants import Steps, compress
from trainjob.runs.variants import Variants
from trainjob.storage import Folder


@pytest.fixture(scope="session")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_texts(tmp_path_factory.mktemp("texts"))


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_digits(tmp_path_factory.mktemp("images"))


@pytest.fixture(scope="session")
def compressed(tmp_path_factory: pytest.TempPathFactory, texts: Path) -> tuple[Folder, Variants]:
    """A text run with all kinds of variants."""
    run = write_run(tmp_path_factory.mktemp("text") / "run", train_job("text", texts))
    return run, compress(run, Steps(prune=0.5, onnx=True, int8=True))


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "SECONDS", 0.0)
