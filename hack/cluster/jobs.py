"""The TrainJobs of a namespace, from a user's point of view."""

import secrets
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

from cluster.client import Cluster, KubectlError

Result = TypeVar("Result")


class Jobs:
    """The TrainJobs of one namespace and their objects."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster, self.namespace = cluster, namespace

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return self.cluster.kubectl("--namespace", self.namespace, *arguments, stdin=stdin)

    def create(self, name: str = "job", metadata: dict[str, Any] | None = None, **spec: Any) -> None:
        self.cluster.put("trainjobs", self.namespace, document(name, metadata, **spec))

    def get(self, kind: str, name: str = "job") -> dict[str, Any] | None:
        return self.cluster.get(kind, self.namespace, name)

    def ray_job(self, name: str = "job") -> dict[str, Any]:
        """Waits for the job's RayJob."""
        return eventually(lambda: self.get("rayjobs", name))

    def status(self, name: str = "job") -> dict[str, Any]:
        found = self.get("trainjobs", name)
        return found.get("status", {}) if found is not None else {}

    def until(self, name: str = "job", **fields: Any) -> dict[str, Any]:
        """Waits until the TrainJob's status has these fields."""

        def reached() -> dict[str, Any] | None:
            status = self.status(name)
            return status if fields.items() <= status.items() else None

        return eventually(reached, because=lambda: f"{fields} was not reached: {self.status(name)}")

    def patch(self, kind: str, name: str, change: dict[str, Any]) -> None:
        self.cluster.merge(kind, self.namespace, name, change)

    def delete(self, kind: str, name: str = "job") -> None:
        """Delete an object and wait until it is gone, even if another one soon has the same name."""
        before = self._uid(kind, name)
        self.cluster.delete(kind, self.namespace, name)
        eventually(lambda: self._uid(kind, name) != before, because=lambda: f"{kind} {name} was not deleted")

    def _uid(self, kind: str, name: str) -> str | None:
        found = self.get(kind, name)
        return found["metadata"]["uid"] if found is not None else None

    def report(self, kind: str, name: str, status: dict[str, Any]) -> None:
        """Writes a part of an object's status, like its controller."""
        self.cluster.merge(kind, self.namespace, name, {"status": status}, "/status")

    def events(self, name: str = "job") -> list[str]:
        """Reasons of the TrainJob's events, in order."""
        selector = f"involvedObject.kind=TrainJob,involvedObject.name={name}"
        found = self.cluster.find("events", self.namespace, fields=selector)
        return [event["reason"] for event in sorted(found, key=lambda event: event["metadata"]["creationTimestamp"])]


def new_name() -> str:
    """A random name for a namespace."""
    return f"test-{secrets.token_hex(4)}"


@contextmanager
def new_namespace(cluster: Cluster, name: str = "") -> Generator[str]:
    """The name of a new namespace, deleted at the end with its contents."""
    name = name or new_name()
    cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    eventually(lambda: cluster.get("serviceaccounts", name, "default"))
    yield name
    cluster.request("DELETE", f"/api/v1/namespaces/{name}")


def document(name: str, metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A small TrainJob; `spec` adds fields, or removes those that are None."""
    fields = {
        "model": {"textClassifier": {"encoder": {}}},
        "dataset": {"train": {"uri": "s3://data/train.csv"}, "text": ["title"], "label": "tag"},
        "storage": {"uri": "s3://runs"},
        **spec,
    }
    return {
        "apiVersion": "trainjob.dev/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, **(metadata or {})},
        "spec": {name: value for name, value in fields.items() if value is not None},
    }


def eventually(
    look: Callable[[], Result | None], seconds: float = 30, because: Callable[[], str] = lambda: "it never came"
) -> Result:
    """Polls `look` until it returns something."""
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
