"""A Kubernetes cluster with KubeRay, as its administrator sees it."""

import json
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from servers.programs import program


class KubectlError(Exception):
    """What kubectl said when it failed."""


class Cluster:
    """The cluster that a kubeconfig file leads to."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig

    def kubectl(self, *arguments: str | Path, stdin: str | None = None) -> str:
        """What kubectl prints."""
        # Another cluster may have had this address before: its cached API would be wrong.
        own = ["--kubeconfig", self.kubeconfig, "--cache-dir", self.kubeconfig.parent / "cache"]
        done = subprocess.run([program("kubectl"), *own, *arguments], input=stdin, text=True, capture_output=True)
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

    def find(self, kind: str, namespace: str) -> list[dict[str, Any]]:
        """All objects of a kind in a namespace."""
        return json.loads(self.kubectl("get", kind, "--namespace", namespace, "--output=json"))["items"]


def _is_established(definition: Mapping[str, Any]) -> bool:
    conditions = definition.get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
