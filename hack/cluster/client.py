"""A client with administrator rights for a Kubernetes cluster with KubeRay."""

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
    "events": "/api/v1",
    "networkpolicies": "/apis/networking.k8s.io/v1",
    "pods": "/api/v1",
    "resourcequotas": "/api/v1",
    "secrets": "/api/v1",
    "serviceaccounts": "/api/v1",
}

LIMIT = 180
"""Timeout in seconds of a kubectl or a request, in addition to its own `--timeout`."""


class KubectlError(Exception):
    """A failed kubectl with its output, or one that timed out."""


class Cluster:
    """The cluster of a kubeconfig file."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig

    def kubectl(self, *arguments: str | Path, stdin: str | None = None) -> str:
        """kubectl's output. Raises KubectlError if it fails or times out."""
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
        """Create or change the objects, by server-side apply."""
        manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        self.kubectl("apply", "--server-side", "-f", "-", stdin=manifest)

    def create_raw(self, path: str, body: Mapping[str, Any]) -> None:
        """Post to an API path, such as a subresource without a kubectl command."""
        self.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(body))

    def await_definitions(self) -> None:
        """Wait until every custom resource definition is served."""
        deadline = time.monotonic() + 60  # `kubectl wait` fails on a new definition, whose conditions are null
        while not all(map(_is_established, self._definitions())):
            assert time.monotonic() < deadline, "custom resource definitions were not established within a minute"
            time.sleep(0.5)

    def _definitions(self) -> list[dict[str, Any]]:
        found = self.request("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
        assert found is not None
        return found["items"]  # megabytes, for which kubectl would need a second of CPU

    def find(self, kind: str, namespace: str, *, labels: str = "", fields: str = "") -> list[dict[str, Any]]:
        """All objects of a kind, such as `pods`, in a namespace, or those that a selector finds.

        Asking the API server itself takes a tenth of what starting kubectl takes; so do the methods below.
        """
        path = _path(kind, namespace)
        found = self.request("GET", path, labelSelector=labels, fieldSelector=fields)
        assert found is not None, f"the API server knows no {kind}"
        return found["items"]

    def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        """An object, or None if it does not exist."""
        return self.request("GET", _path(kind, namespace, name))

    def put(self, kind: str, namespace: str, document: Mapping[str, Any]) -> None:
        """Create or change an object, by server-side apply."""
        path = _path(kind, namespace, document["metadata"]["name"])
        self.request("PATCH", path, document, patch="apply-patch+yaml", fieldManager="user", force="true")

    def merge(self, kind: str, namespace: str, name: str, change: Mapping[str, Any], subresource: str = "") -> None:
        """Change some fields of an object, or of a subresource such as `/status`."""
        path = _path(kind, namespace, name) + subresource
        assert self.request("PATCH", path, change) is not None, f"there is no {path}"

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """Request the deletion of an object and its dependents; it may still exist for a while."""
        self.request("DELETE", _path(kind, namespace, name), {"propagationPolicy": "Background"})

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        patch: str = "merge-patch+json",
        **query: str,
    ) -> dict[str, Any] | None:
        """The API's answer; None where there is nothing at the path.

        Raises OSError where the API server does not answer or refuses.
        """
        content = {"Content-Type": f"application/{patch}" if method == "PATCH" else "application/json"}
        request = self._connection.param_serialize(
            method,
            path,
            query_params=list(query.items()),
            header_params=content,
            body=body,
            auth_settings=["BearerToken"],
        )
        try:
            response = self._connection.call_api(*request, _request_timeout=LIMIT)
        except HTTPError as error:
            raise OSError(f"{path}: {error}") from error
        answer = response.read()
        if response.status == 404:
            return None
        if response.status >= 300:
            raise OSError(f"{path}: {response.status} {answer!r}")
        return json.loads(answer)

    @cached_property
    def _connection(self) -> ApiClient:
        return new_client_from_config(str(self.kubeconfig))


def _path(kind: str, namespace: str, name: str = "") -> str:
    """API path of an object or of all objects of a kind, which may be singular as with kubectl."""
    plural = kind if kind in _APIS else f"{kind}s"
    return f"{_APIS[plural]}/namespaces/{namespace}/{plural}/{name}".rstrip("/")


def _own_timeout(arguments: Sequence[str | Path]) -> int:
    """The value of kubectl's `--timeout` in seconds."""
    return sum(int(found) for each in arguments for found in re.findall(r"^--timeout=(\d+)s$", str(each)))


def _is_established(definition: Mapping[str, Any]) -> bool:
    conditions = definition.get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
