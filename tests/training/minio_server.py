"""A real MinIO server on this machine."""

import os
import secrets
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cluster.component import ENDS_WITH_US, free_ports
from servers.programs import program


@dataclass
class MinIO:
    """A server that may be stopped and started again: address, keys and data stay the same."""

    folder: Path
    endpoint: str
    access_key: str
    secret_key: str
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables from which S3 clients take the credentials."""
        return {"AWS_ACCESS_KEY_ID": self.access_key, "AWS_SECRET_ACCESS_KEY": self.secret_key}

    def start(self) -> None:
        address = self.endpoint.removeprefix("http://")
        settings = {"MINIO_ROOT_USER": self.access_key, "MINIO_ROOT_PASSWORD": self.secret_key}
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                [*ENDS_WITH_US, program("minio"), "server", "--address", address, self.folder / "data"],
                env=os.environ | settings | {"MINIO_BROWSER": "off", "MINIO_UPDATE": "off"},
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + 60
        while self._process.poll() is None and time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"{self.endpoint}/minio/health/ready", timeout=5):
                    return
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        raise RuntimeError(f"MinIO did not start:\n{(self.folder / 'log').read_text()}")

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=60)


@contextmanager
def running(folder: Path) -> Generator[MinIO]:
    """A server that keeps its data in `folder`, until the end of the block."""
    (port,) = free_ports(1)
    server = MinIO(folder, f"http://127.0.0.1:{port}", secrets.token_hex(8), secrets.token_hex(16))
    try:
        server.start()
        yield server
    finally:
        server.stop()
