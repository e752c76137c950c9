"""Tiny sets to train on, the runs that do it, a server that keeps them and a Ray cluster that is already up."""

import os
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import minio_server
import pytest
from minio_server import MinIO
from ray_head import ray_head
from training_runs import WORKERS_FIRST, Finished, Run, write_run

from cluster.component import free_ports
from nightly import at_night
from tiny_sets import write_digits, write_texts
from trainjob import local_ray
from trainjob.serving.config import ENVIRONMENT as SERVING


@pytest.fixture
def new_run(tmp_path: Path, text_set: Path, image_set: Path) -> Callable[..., Run]:
    """Writes a TrainJob: `new_run("text" | "image", {"training.epochs": 2, …})`."""

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


@pytest.fixture(scope="session")
def on_ray(tmp_path_factory: pytest.TempPathFactory, text_set: Path) -> Finished:
    """A finished text run on a Ray cluster of its own, and the command's output. It has the baselines of a TrainJob
    that says nothing of them."""
    run = write_run(
        tmp_path_factory.mktemp("on_ray"), "text", text_set, {"dataset.loader": "rayData", "baselines": None}, "tags"
    )
    return run, run.finish()


@pytest.fixture(scope="session")
def local(tmp_path_factory: pytest.TempPathFactory, text_set: Path) -> Finished:
    """The same run in local processes, which the loader `auto` chooses."""
    run = write_run(tmp_path_factory.mktemp("local"), "text", text_set, {"baselines": None}, "tags")
    run.first = WORKERS_FIRST
    return run, run.finish()


@pytest.fixture(scope="session", params=["local", at_night("on_ray")])
def finished(request: pytest.FixtureRequest) -> Finished:
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def _ray_ports(tmp_path_factory: pytest.TempPathFactory, minio_process: MinIO) -> Generator[tuple[int, int]]:
    """The ports of a Ray cluster, and of its server for clients. Its processes have MinIO's address and credentials, as
    a job's pods have their bucket's, and what a RayService's pods have."""
    port, client_port = free_ports(2)
    options = [f"--port={port}", "--num-cpus=4", f"--ray-client-server-port={client_port}"]
    options += ["--include-dashboard=false", "--include-log-monitor=false"]
    environment = local_ray.ENVIRONMENT | SERVING | minio_process.environment
    environment["AWS_ENDPOINT_URL"] = minio_process.endpoint
    with ray_head(options, os.environ | environment, tmp_path_factory.mktemp("ray") / "log"):
        yield port, client_port


@pytest.fixture
def warm_ray(_ray_ports: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> int:
    """Runs use a Ray cluster that is up, as `RAY_ADDRESS` names it; nothing will take its machine away. Returns the
    port of its server for clients."""
    port, client_port = _ray_ports
    monkeypatch.setenv("RAY_TRAIN_ENABLE_PREEMPTION_WATCHER", "0")
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{port}")
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    return client_port
