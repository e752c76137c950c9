"""A pod that a command runs for a while, as a Job of Kubernetes: the cluster deletes it if the command cannot."""

import secrets
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from trainjob.api.cluster import KubernetesObject
from trainjob.api.resources import EVENTS, JOBS, PODS
from trainjob.cluster.connection import Connection
from trainjob.cluster.errors import ClusterError, NotPermitted

DELETED_AFTER_SECONDS = 30
"""Seconds after its end when the cluster deletes the pod."""
FINAL_REASONS = ("CreateContainerConfigError", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
"""Waiting reasons of a container that do not go away by themselves."""


class ShortLivedPod:
    """Methods raise ClusterError."""

    def __init__(self, connection: Connection, namespace: str, prefix: str) -> None:
        self._connection, self._namespace = connection, namespace
        self._name = f"{prefix}-{secrets.token_hex(4)}"

    def create(
        self, pod: KubernetesObject, metadata: Mapping[str, Any] | None = None, seconds: int | None = None
    ) -> None:
        """Creates a pod with this metadata and spec. `metadata` is the Job's; the cluster ends it after `seconds`."""
        limit = {} if seconds is None else {"activeDeadlineSeconds": seconds}
        body = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": self._name, **(metadata or {})},
            "spec": {
                "backoffLimit": 0,
                "ttlSecondsAfterFinished": DELETED_AFTER_SECONDS,
                "template": pod,
                **limit,
            },
        }
        self._connection.request("POST", JOBS, self._namespace, body=body)

    def find(self) -> KubernetesObject | None:
        """The pod; None while Kubernetes has not created it."""
        query = {"labelSelector": f"batch.kubernetes.io/job-name={self._name}"}
        pods = self._connection.request("GET", PODS, self._namespace, query=query).get("items") or []
        return pods[0] if pods else None

    def events(self, pod: KubernetesObject | None) -> list[KubernetesObject]:
        """The Events of the pod or, without one, of its Job; empty if they may not be listed."""
        selector = (
            f"involvedObject.name={self._name}" if pod is None else f"involvedObject.uid={pod['metadata']['uid']}"
        )
        try:
            found = self._connection.request("GET", EVENTS, self._namespace, query={"fieldSelector": selector})
        except NotPermitted:
            return []
        return found.get("items") or []

    def delete(self) -> None:
        """Deletes the pod. If the cluster does not answer, it deletes the pod once it has ended."""
        with suppress(ClusterError):
            body = {"propagationPolicy": "Background"}
            self._connection.request("DELETE", JOBS, self._namespace, self._name, body=body)
