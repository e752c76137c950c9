"""Connects to the cluster's MinIO, and creates the chart's default storage in it."""

import base64
import json
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyarrow import fs

from cluster.client import Cluster
from cluster.component import free_ports
from cluster.jobs import eventually
from servers.programs import program

START_SECONDS = 120
DEFAULT_BUCKET = "runs"
"""The bucket of the chart's default storage, in values.yaml."""


@dataclass(frozen=True)
class Reached:
    """An S3 server."""

    endpoint: str
    credentials: dict[str, str]
    """The server's settings as environment variables."""

    @property
    def files(self) -> fs.S3FileSystem:
        return fs.S3FileSystem(
            access_key=self.credentials["AWS_ACCESS_KEY_ID"],
            secret_key=self.credentials["AWS_SECRET_ACCESS_KEY"],
            endpoint_override=self.endpoint,
            allow_bucket_creation=True,
            connect_timeout=10,
            request_timeout=60,
        )

    def secret(self, namespace: str) -> dict[str, Any]:
        """The Secret that `storage.secretName` names."""
        metadata = {"name": "s3", "namespace": namespace}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": self.credentials}


@contextmanager
def reached(cluster: Cluster, namespace: str = "minio") -> Generator[Reached]:
    """The MinIO of a namespace, through a port forwarded by kubectl within the block."""
    found = json.loads(cluster.kubectl("get", "secret", "minio", "--namespace", namespace, "--output=json"))["data"]
    (port,) = free_ports(1)
    credentials = {key: base64.b64decode(value).decode() for key, value in found.items()}
    server = Reached(f"http://127.0.0.1:{port}", credentials)
    command = [program("kubectl"), "--kubeconfig", cluster.kubeconfig, "--namespace", namespace, "port-forward"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen([*command, "service/minio", f"{port}:9000"], stdout=quiet, stderr=quiet) as forward:
        try:
            eventually(
                lambda: server.files.get_file_info(fs.FileSelector("")) is not None,  # of "/" the server is not asked
                START_SECONDS,
                lambda: f"MinIO in {namespace} was not reached; kubectl port-forward: {forward.poll() or 'running'}",
            )
            yield server
        finally:
            forward.kill()


def prepare(cluster: Cluster) -> None:
    """Creates the bucket of the default storage, and its Secret for TrainJobs in the namespace `default`."""
    with reached(cluster) as server:
        server.files.create_dir(DEFAULT_BUCKET)
        cluster.apply(server.secret("default"))
