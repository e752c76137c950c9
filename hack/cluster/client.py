"""A Kubernetes cluster with KubeRay, as its administrator sees it."""

import json
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from kubernetes.client import ApiClient
from kubernetes.config import new_client_from_config
from urllib3.exceptions import HTTPError

from servers.programs import program

_APIS = {
    "trainjobs": "/apis/trainjob.dev/v1alpha1",
    "rayjobs": "/apis/ray.io/v1",
    "rayclusters": "/apis/ray.io/v1",
    "workloads": "/apis/kueue.x-k8s.io/v1beta2",
    "configmaps": "/api/v1",
    "pods": "/api/v1",
}


LIMIT = 180
"""Seconds that a kubectl or a request may take, besides what its own `--timeout` allows for waiting."""


class KubectlError(Exception):
    """What kubectl said when it failed, or that it did not end."""


class Cluster:
    """The cluster that a kubeconfig file leads to."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig

    def kubectl(self, *arguments: str | Path, stdin: str | None = None) -> str:
        """What kubectl prints. Raises KubectlError where it fails, or does not end within its limit."""
        # Another cluster may have had this address before: its cached API would be wrong.
        own = ["--kubeconfig", self.kubeconfig, "--cache-dir", self.kubeconfig.parent / "cache"]
        command, limit = [program("kubectl"), *own, *arguments], LIMIT + _own_timeout(arguments)
        try:
            done = subprocess.run(command, input=stdin, text=True, capture_output=True, timeout=limit)
        except subprocess.TimeoutExpired:
            raise KubectlError(f"kubectl {' '.join(map(str, arguments))}: did not end within {limit} s") from None
        if done.returncode:
            raise KubectlError(done.stderr.strip())
        return done.stdout

    def apply(self, *objects: Mapping[str, Any]) -> None:
        """Create the objects or change them, by server-side apply."""
        manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        self.kubectl("apply", "--server-side", "-f", "-", stdin=manifest)

    def create_raw(self, path: str, body: Mapping[str, Any]) -> None:
        """Post to a path of the API, such as a subresource that kubectl has no command for."""
        self.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(body))

    def await_definitions(self) -> None:
        """Wait until every custom resource definition is served."""
        deadline = time.monotonic() + 60  # `kubectl wait` fails on a new definition, whose conditions are null
        while not all(map(_is_established, json.loads(self.kubectl("get", "crd", "--output=json"))["items"])):
            assert time.monotonic() < deadline, "custom resource definitions were not established within a minute"
            time.sleep(0.1)

    def find(self, kind: str, namespace: str, selector: str = "") -> list[dict[str, Any]]:
        """All objects of a kind, such as `pods`, in a namespace, or those with some labels."""
        found = self._read(f"{_APIS[kind]}/namespaces/{namespace}/{kind}", labelSelector=selector)
        assert found is not None, f"the API server knows no {kind}"
        return found["items"]

    def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        """An object, if it is there. Asking like this takes a fiftieth of what starting kubectl takes."""
        return self._read(f"{_APIS[kind]}/namespaces/{namespace}/{kind}/{name}")

    @cached_property
    def _connection(self) -> ApiClient:
        return new_client_from_config(str(self.kubeconfig))

    def _read(self, path: str, **query: str) -> dict[str, Any] | None:
        """What is at a path of the API. Raises OSError where the API server does not answer it."""
        parameters = [(key, value) for key, value in query.items() if value]
        request = self._connection.param_serialize("GET", path, query_params=parameters, auth_settings=["BearerToken"])
        try:
            response = self._connection.call_api(*request, _request_timeout=LIMIT)
        except HTTPError as error:
            raise OSError(f"{path}: {error}") from error
        content = response.read()
        if response.status == 404:
            return None
        if response.status != 200:
            raise OSError(f"{path}: {response.status} {content!r}")
        return json.loads(content)


def _own_timeout(arguments: Sequence[str | Path]) -> int:
    """Seconds that kubectl is told to wait for something."""
    return sum(int(found) for each in arguments for found in re.findall(r"^--timeout=(\d+)s$", str(each)))


def _is_established(definition: Mapping[str, Any]) -> bool:
    conditions = definition.get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
