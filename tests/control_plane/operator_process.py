"""The operator as a process of its own, and its settings."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import yaml

from cluster.client import Cluster
from cluster.component import ENDS_WITH_US, free_ports
from cluster.jobs import Jobs, eventually

SETTINGS = {
    "image": "registry.example/trainjob:1",
    "nodePools": {"a100": {"gpusPerNode": 4}},
    "defaults": {"storage": {"uri": "s3://shared"}},
}


class OperatorProcess:
    """One replica of the operator, beside the cluster."""

    def __init__(
        self,
        cluster: Cluster,
        folder: Path,
        namespaces: list[str],
        *options: str,
        environment: Mapping[str, str] | None = None,
        settings: Mapping[str, Any] = SETTINGS,
    ) -> None:
        self.log = folder / f"operator-{time.monotonic_ns()}.log"
        file = folder / "settings.yaml"
        file.write_text(yaml.safe_dump({**settings, "namespaces": namespaces}))
        (self.port,) = free_ports(1)
        command = [str(Path(sys.executable).parent / "trainjob-operator"), "run"]
        self._command = [*ENDS_WITH_US, *command, "--settings", str(file), "--port", str(self.port), *options]
        self._environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), **(environment or {})}
        self.process = self._start()

    def _start(self) -> "subprocess.Popen[bytes]":
        with self.log.open("ab") as log:
            return subprocess.Popen(self._command, env=self._environment, stdout=log, stderr=log)

    @contextmanager
    def kept_running(self) -> Generator[None]:
        """Restarts the operator during the block whenever it ends, as the kubelet does."""
        over = threading.Event()

        def keep() -> None:
            while not over.wait(0.2):
                if self.process.poll() is not None:
                    self.process = self._start()
            self.kill()  # before the thread that has started it ends

        thread = threading.Thread(target=keep)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def get(self, path: str) -> str:
        """The response of the operator's own server."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as response:
            return response.read().decode()

    def wait_ready(self) -> None:
        eventually(lambda: self.get("/readyz") == "", because=self.log.read_text)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """Ends it in good order and returns its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30)


def answer_at(port: int, path: str) -> str:
    """The response of an operator at this port; that of an error begins with its status."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as response:
            return response.read().decode()
    except HTTPError as error:
        return f"{error.code} {error.read().decode()}"


@contextmanager
def operator(
    cluster: Cluster,
    folder: Path,
    namespaces: list[str],
    *options: str,
    environment: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] = SETTINGS,
) -> Generator[OperatorProcess]:
    process = OperatorProcess(cluster, folder, namespaces, *options, environment=environment, settings=settings)
    try:
        process.wait_ready()
        yield process
    except BaseException:
        print(process.log.read_text())  # pytest shows it beside the failure
        raise
    finally:
        process.kill()


def account(jobs: Jobs, folder: Path) -> Path:
    """A kubeconfig of a new service account `operator` in the namespace."""
    jobs.kubectl("create", "serviceaccount", "operator")
    configuration = json.loads(jobs.cluster.kubeconfig.read_text())
    configuration["users"][0]["user"] = {"token": jobs.kubectl("create", "token", "operator").strip()}
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(json.dumps(configuration))
    return kubeconfig


def leads(process: OperatorProcess) -> bool:
    """Whether this replica says that it does the work; one that has ended does not."""
    try:
        return "trainjob_leader 1.0" in process.get("/metrics")
    except OSError:
        return False
