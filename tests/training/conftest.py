"""Tiny sets to train on, and the runs that do it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from training_runs import Run, write_run

from tiny_sets import write_digits, write_texts


@pytest.fixture
def new_run(tmp_path: Path, text_set: Path, image_set: Path) -> Callable[..., Run]:
    """Makes a run: `new_run("text" | "image", {"training.epochs": 3, …})`."""

    def make(kind: str, changes: dict[str, Any] | None = None, name: str = "run") -> Run:
        return write_run(tmp_path, kind, text_set if kind == "text" else image_set, changes or {}, name)

    return make


@pytest.fixture(scope="session")
def text_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_texts(tmp_path_factory.mktemp("texts"))


@pytest.fixture(scope="session")
def image_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_digits(tmp_path_factory.mktemp("images"))
