"""A MinIO of the cluster, as this machine reaches it."""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyarrow import fs

from cluster.client import Cluster
from cluster.component import free_ports
from cluster.jobs import eventually
from servers.programs import program

BUCKET = "e2e"
ENDPOINT = "http://minio.minio:9000"
"""As pods reach it."""
START_SECONDS = 120


class ObjectStore:
    """Paths begin with a bucket's name."""

    def __init__(self, endpoint: str, credentials: dict[str, str]) -> None:
        self.endpoint, self.credentials = endpoint, credentials
        key, secret = credentials["AWS_ACCESS_KEY_ID"], credentials["AWS_SECRET_ACCESS_KEY"]
        self.files = fs.S3FileSystem(
            access_key=key,
            secret_key=secret,
            endpoint_override=endpoint,
            allow_bucket_creation=True,
            connect_timeout=10,
            request_timeout=60,
        )

    def upload(self, folder: Path, target: str) -> None:
        self.files.create_dir(target)
        fs.copy_files(str(folder), target, destination_filesystem=self.files)

    def secret(self, namespace: str) -> dict[str, Any]:
        """The Secret that a TrainJob's `storage.secretName` names."""
        metadata = {"name": "s3", "namespace": namespace}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": self.credentials}

    def read(self, path: str) -> bytes:
        with self.files.open_input_stream(path) as stream:
            return stream.read()

    def write(self, path: str, data: bytes) -> None:
        with self.files.open_output_stream(path) as stream:
            stream.write(data)

    def trainjob(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs the `trainjob` command on this machine with the store's credentials."""
        environment = os.environ | self.credentials | {"AWS_ENDPOINT_URL": self.endpoint}
        command = [sys.executable, "-m", "trainjob", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


@contextmanager
def object_store(cluster: Cluster, namespace: str = "minio") -> Generator[ObjectStore]:
    """The MinIO of a namespace, through a port that kubectl forwards in the block."""
    found = json.loads(cluster.kubectl("get", "secret", "minio", "--namespace", namespace, "--output=json"))["data"]
    (port,) = free_ports(1)
    store = ObjectStore(
        f"http://127.0.0.1:{port}", {key: base64.b64decode(value).decode() for key, value in found.items()}
    )
    command = [program("kubectl"), "--kubeconfig", cluster.kubeconfig, "--namespace", namespace, "port-forward"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen([*command, "service/minio", f"{port}:9000"], stdout=quiet, stderr=quiet) as forward:
        try:
            eventually(
                lambda: store.files.get_file_info("/") or True,
                START_SECONDS,
                lambda: f"MinIO in {namespace} was not reached; kubectl port-forward: {forward.poll() or 'running'}",
            )
            yield store
        finally:
            forward.kill()
