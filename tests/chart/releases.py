"""The chart as Helm renders and installs it."""

import json
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from cluster.client import Cluster
from servers.programs import program

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "trainjob"
NAMESPACE = "trainjob-system"
OPERATOR = "trainjob-operator"
DEFINITION = "customresourcedefinition/trainjobs.trainjob.dev"

Object = dict[str, Any]
Values = Mapping[str, Any]


class HelmError(Exception):
    """Helm's error message."""


def helm(*arguments: str | Path, values: Values | None = None) -> str:
    """Returns Helm's output."""
    given = ["--values=-"] if values is not None else []
    done = subprocess.run(
        [program("helm"), *arguments, *given], input=json.dumps(values), text=True, capture_output=True, timeout=300
    )
    if done.returncode:
        raise HelmError(done.stderr.strip())
    return done.stdout


def render(values: Values) -> list[Object]:
    """The chart's objects with these values."""
    return documents(_rendered(json.dumps(values)))


@cache
def _rendered(values: str) -> str:
    """Many tests look at the same."""
    return helm("template", "trainjob", CHART, f"--namespace={NAMESPACE}", values=json.loads(values))


def documents(text: str) -> list[Object]:
    """The objects in a manifest; libyaml reads them ten times as fast."""
    return [found for found in yaml.load_all(text, yaml.CSafeLoader) if found]


def find(objects: list[Object], kind: str, name: str = OPERATOR) -> Object:
    """The object of this kind and name, which must be there once for every namespace."""
    return next(found for found in objects if found["kind"] == kind and found["metadata"]["name"] == name)


def kinds(objects: list[Object]) -> set[str]:
    return {found["kind"] for found in objects}


def settings_file(objects: list[Object]) -> str:
    return find(objects, "ConfigMap")["data"]["settings.yaml"]


class Release:
    """The chart as it is installed in a cluster."""

    def __init__(self, cluster: Cluster, name: str = "trainjob", namespace: str = NAMESPACE) -> None:
        self.cluster, self.name, self.namespace = cluster, name, namespace

    def install(self, values: Values, chart: Path = CHART) -> str:
        return self._helm("install", self.name, chart, values=values)

    def upgrade(self, values: Values, chart: Path = CHART) -> str:
        return self._helm("upgrade", self.name, chart, values=values)

    def rollback(self) -> None:
        self._helm("rollback", self.name)

    def uninstall(self) -> None:
        self._helm("uninstall", self.name)

    def get(self, kind: str, name: str = OPERATOR) -> Object | None:
        """An object in the release's namespace."""
        options = ("--namespace", self.namespace, "--ignore-not-found", "--output=json")
        found = self.cluster.kubectl("get", kind, name, *options)
        return json.loads(found) if found else None

    def settings(self) -> Object:
        """The operator's settings."""
        found = self.get("configmap")
        assert found is not None
        return yaml.safe_load(found["data"]["settings.yaml"])

    def _helm(self, *arguments: str | Path, values: Values | None = None) -> str:
        own = [f"--kubeconfig={self.cluster.kubeconfig}", f"--namespace={self.namespace}"]
        return helm(*arguments, *own, values=values)


@contextmanager
def installed(cluster: Cluster, values: Values) -> Generator[Release]:
    """The chart as it is, until the end of the block; then all TrainJobs go as well."""
    release = Release(cluster)
    release.install(values)
    try:
        cluster.await_definitions()
        yield release
    finally:
        release.uninstall()
        cluster.kubectl("delete", DEFINITION)


def token(cluster: Cluster, namespace: str, account: str, pod: str | None = None) -> str:
    """A service account's token; one that is bound to a pod is what the pod gets."""
    bound: list[str] = []
    if pod is not None:
        uid = cluster.kubectl("get", "pod", pod, "--namespace", namespace, "--output=jsonpath={.metadata.uid}")
        bound = ["--bound-object-kind=Pod", f"--bound-object-name={pod}", f"--bound-object-uid={uid}"]
    return cluster.kubectl("create", "token", account, "--namespace", namespace, *bound).strip()


def signed_in(cluster: Cluster, bearer: str) -> Object:
    """A kubeconfig for the one who has this token."""
    configuration = json.loads(cluster.kubeconfig.read_text())
    configuration["users"][0]["user"] = {"token": bearer}
    return configuration
