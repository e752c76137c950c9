"""A real MinIO server on this machine."""

import os
import secrets
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from servers.programs import program


@dataclass(frozen=True)
class MinIO:
    endpoint: str
    access_key: str
    secret_key: str

    @property
    def environment(self) -> dict[str, str]:
        """What S3 clients take the credentials from."""
        return {"AWS_ACCESS_KEY_ID": self.access_key, "AWS_SECRET_ACCESS_KEY": self.secret_key}


@contextmanager
def running(folder: Path) -> Generator[MinIO]:
    """A server that keeps its data in `folder`, until the end of the block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    server = MinIO(f"http://{address}", secrets.token_hex(8), secrets.token_hex(16))
    environment = {"MINIO_ROOT_USER": server.access_key, "MINIO_ROOT_PASSWORD": server.secret_key}
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            [program("minio"), "server", "--address", address, folder / "data"],
            env=os.environ | environment | {"MINIO_BROWSER": "off", "MINIO_UPDATE": "off"},
            stdout=log,
            stderr=log,
        )
    try:
        _wait(process, server, folder / "log")
        yield server
    finally:
        process.terminate()
        process.wait(timeout=30)


def _wait(process: subprocess.Popen[bytes], server: MinIO, log: Path) -> None:
    while process.poll() is None:
        try:
            with urllib.request.urlopen(f"{server.endpoint}/minio/health/ready", timeout=5):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    raise RuntimeError(f"MinIO did not start:\n{log.read_text()}")
