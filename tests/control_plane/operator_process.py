"""The operator as a process of its own, and what its tests say and look at."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import yaml

from cluster.client import Cluster, KubectlError
from cluster.component import free_ports

SETTINGS = {"image": "registry.example/trainjob:1", "nodePools": {"a100": {"gpusPerNode": 4}}}

Result = TypeVar("Result")


class OperatorProcess:
    """One replica of the operator, beside the cluster."""

    def __init__(
        self,
        cluster: Cluster,
        folder: Path,
        namespaces: list[str],
        *options: str,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.log = folder / f"operator-{time.monotonic_ns()}.log"
        settings = folder / "settings.yaml"
        settings.write_text(yaml.safe_dump(SETTINGS | {"namespaces": namespaces}))
        (self.port,) = free_ports(1)
        command = [str(Path(sys.executable).parent / "trainjob-operator"), "run"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "--settings", str(settings), "--port", str(self.port), *options],
                env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig), **(environment or {})},
                stdout=log,
                stderr=log,
            )

    def get(self, path: str) -> str:
        """What the operator's own server answers."""
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


@contextmanager
def operator(
    cluster: Cluster, folder: Path, namespaces: list[str], *options: str, environment: Mapping[str, str] | None = None
) -> Generator[OperatorProcess]:
    process = OperatorProcess(cluster, folder, namespaces, *options, environment=environment)
    try:
        process.wait_ready()
        yield process
    finally:
        process.kill()


class Jobs:
    """The TrainJobs of one namespace, and what is made of them."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster, self.namespace = cluster, namespace

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return self.cluster.kubectl("--namespace", self.namespace, *arguments, stdin=stdin)

    def create(self, name: str = "job", metadata: dict[str, Any] | None = None, **spec: Any) -> None:
        self.kubectl("apply", "-f", "-", stdin=json.dumps(document(name, metadata, **spec)))

    def get(self, kind: str, name: str = "job") -> dict[str, Any] | None:
        found = self.kubectl("get", kind, name, "--ignore-not-found", "--output=json")
        return json.loads(found) if found else None

    def ray_job(self, name: str = "job") -> dict[str, Any]:
        """The job's RayJob, once there is one."""
        return eventually(lambda: self.get("rayjob", name))

    def status(self, name: str = "job") -> dict[str, Any]:
        found = self.get("trainjob", name)
        return found.get("status", {}) if found is not None else {}

    def until(self, name: str = "job", **fields: Any) -> dict[str, Any]:
        """The TrainJob's status, once it has these fields."""

        def reached() -> dict[str, Any] | None:
            status = self.status(name)
            return status if fields.items() <= status.items() else None

        return eventually(reached, because=lambda: f"{fields} was not reached: {self.status(name)}")

    def patch(self, kind: str, name: str, change: dict[str, Any], *options: str) -> None:
        self.kubectl("patch", kind, name, "--type=merge", "-p", json.dumps(change), *options)

    def report(self, kind: str, name: str, status: dict[str, Any]) -> None:
        """Writes a part of an object's status, as its own controller does."""
        self.patch(kind, name, {"status": status}, "--subresource=status")

    def events(self, name: str = "job") -> list[str]:
        """Reasons of the TrainJob's events, in their order."""
        selector = f"involvedObject.kind=TrainJob,involvedObject.name={name}"
        found = json.loads(self.kubectl("get", "events", "--field-selector", selector, "--output=json"))["items"]
        return [event["reason"] for event in sorted(found, key=lambda event: event["metadata"]["creationTimestamp"])]


def document(name: str, metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A small TrainJob; `spec` has fields besides."""
    return {
        "apiVersion": "trainjob.dev/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, **(metadata or {})},
        "spec": {
            "model": {"textClassifier": {"encoder": {}}},
            "dataset": {"train": {"uri": "s3://data/train.csv"}, "text": ["title"], "label": "tag"},
            "storage": {"uri": "s3://runs"},
            **spec,
        },
    }


def eventually(
    look: Callable[[], Result | None], seconds: float = 30, because: Callable[[], str] = lambda: "it never came"
) -> Result:
    """What `look` finds, once it finds something."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            found = look()
        except (KubectlError, OSError):
            found = None
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(because())
