"""What several folders of tests share."""

import secrets
from collections.abc import Generator
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

import minio_server
from cluster.client import Cluster


class Together(LoadScopeScheduling):
    """Has one test process run what shares a cluster, or a run of its module."""

    def _split_scope(self, nodeid: str) -> str:
        folder = nodeid.split("/")[1]
        return folder if folder in ("control_plane", "chart") else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    return Together(config, log) if config.getoption("dist") == "loadscope" else None


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


@pytest.fixture
def namespace(cluster: Cluster) -> Generator[str]:
    """The name of a new namespace, which goes after the test with all that is in it."""
    name = f"test-{secrets.token_hex(4)}"
    cluster.kubectl("create", "namespace", name)
    cluster.kubectl("wait", "--for=create", "serviceaccount/default", "--namespace", name, "--timeout=30s")
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")
