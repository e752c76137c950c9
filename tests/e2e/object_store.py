"""A MinIO of the cluster, as this machine reaches it."""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyarrow import fs

from cluster.client import Cluster
from kind.object_store import Reached, reached

BUCKET = "e2e"
ENDPOINT = "http://minio.minio:9000"
"""The address inside the cluster."""


class ObjectStore:
    """Paths begin with a bucket's name."""

    def __init__(self, server: Reached) -> None:
        self.server, self.files = server, server.files

    def upload(self, folder: Path, target: str) -> None:
        self.files.create_dir(target)
        fs.copy_files(str(folder), target, destination_filesystem=self.files)

    def secret(self, namespace: str) -> dict[str, Any]:
        """The Secret that a TrainJob's `storage.secretName` names."""
        return self.server.secret(namespace)

    def read(self, path: str) -> bytes:
        with self.files.open_input_stream(path) as stream:
            return stream.read()

    def write(self, path: str, data: bytes) -> None:
        with self.files.open_output_stream(path) as stream:
            stream.write(data)

    @property
    def credentials(self) -> dict[str, str]:
        """Variables with which this machine reaches the store."""
        return self.server.credentials | {"AWS_ENDPOINT_URL": self.server.endpoint}

    def trainjob(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs the `trainjob` command on this machine with the store's credentials."""
        environment = os.environ | self.credentials
        command = [sys.executable, "-m", "trainjob", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


@contextmanager
def object_store(cluster: Cluster, namespace: str = "minio") -> Generator[ObjectStore]:
    """The MinIO of a namespace, in the block."""
    with reached(cluster, namespace) as server:
        yield ObjectStore(server)
