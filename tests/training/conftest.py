"""Tiny sets to train on, the runs that do it, and a server that keeps them."""

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import minio_server
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


@pytest.fixture(scope="session")
def minio_process(tmp_path_factory: pytest.TempPathFactory) -> Generator[minio_server.MinIO]:
    with minio_server.running(tmp_path_factory.mktemp("minio")) as server:
        yield server


@pytest.fixture
def minio(minio_process: minio_server.MinIO, monkeypatch: pytest.MonkeyPatch) -> minio_server.MinIO:
    """A MinIO server whose credentials are in the environment."""
    for name, value in minio_process.environment.items():
        monkeypatch.setenv(name, value)
    return minio_process


@pytest.fixture
def bucket(minio: minio_server.MinIO, tmp_path: Path) -> str:
    """The name of a new, empty bucket on `minio`."""
    from pyarrow import fs

    name = tmp_path.name.replace("_", "-").lower()[:40].strip("-") + f"-{abs(hash(tmp_path)) % 10**8}"
    fs.S3FileSystem(endpoint_override=minio.endpoint, region="us-east-1", allow_bucket_creation=True).create_dir(name)
    return name
