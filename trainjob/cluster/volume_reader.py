"""A short-lived pod that mounts the volume of a job's run read-only, and sends its files to this machine."""

import atexit
import importlib.resources
import secrets
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Any

from trainjob.api.cluster import STORAGE_PATH, KubernetesObject
from trainjob.api.names import GROUP, KIND, VERSION, run_name
from trainjob.api.resources import EVENTS, PODS, Resource
from trainjob.cluster.client import Client
from trainjob.cluster.connection import NotFound
from trainjob.cluster.errors import ClusterError, NotPermitted
from trainjob.cluster.forwarded import ForwardedPool
from trainjob.cluster.head import is_up
from trainjob.cluster.job import Job

PORT = 8931
START_SECONDS = 600
"""Of which the first pull of an image may take most."""
IDLE_SECONDS = 120
"""After that without a request the pod ends, if this process could not delete it."""
_DELETED_AFTER_SECONDS = 30
_PAUSE_SECONDS = 1.0
_JOBS = Resource("/apis/batch/v1", "jobs")
_RAY_JOBS = Resource("/apis/ray.io/v1", "rayjobs")
_STORAGE = "trainjob-storage"
_STARTS = "Starting"
_FINAL_REASONS = ("CreateContainerConfigError", "ErrImageNeverPull", "ImagePullBackOff", "InvalidImageName")


def reader_pod(head: KubernetesObject, folder: str) -> KubernetesObject:
    """Spec of the pod that serves `folder`, from that of the job's head pod: with its image, user, service account,
    pull secrets and place, and of its volumes the storage alone."""
    container = head["containers"][0]  # Ray's, as KubeRay has it
    kept = ("image", "imagePullPolicy", "securityContext")
    places = ("affinity", "enableServiceLinks", "imagePullSecrets", "nodeSelector", "schedulerName", "securityContext")
    source = importlib.resources.files("trainjob.cluster").joinpath("file_server.py").read_text()
    command = ["python", "-c", source, folder, str(PORT), str(IDLE_SECONDS)]
    amounts = {"limits": {"memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "256Mi"}}
    if "cpu" in container.get("resources", {}).get("limits", {}):
        amounts["limits"]["cpu"] = "1"
    mount = {"name": _STORAGE, "mountPath": STORAGE_PATH, "readOnly": True}
    own = {"name": "reader", "command": command, "resources": amounts, "volumeMounts": [mount]}
    return {name: head[name] for name in (*places, "serviceAccountName", "tolerations") if name in head} | {
        "automountServiceAccountToken": False,
        "containers": [{name: container[name] for name in kept if name in container} | own],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "volumes": [volume for volume in head["volumes"] if volume["name"] == _STORAGE],
    }


class VolumeReader:
    """The pod and a pool of connections to it. It starts again if it has ended, and is deleted with this process."""

    def __init__(self, client: Client, job: Job, on_wait: Callable[[str], None]) -> None:
        self._client, self._job, self._on_wait = client, job, on_wait
        self._batch_job: str | None = None
        self._pod: KubernetesObject | None = None
        self._starting = Lock()
        self.pool = ForwardedPool(self._connect)
        atexit.register(self.delete)

    def start(self) -> None:
        """Starts the pod and waits until it runs. Raises ClusterError if it does not start."""
        try:
            self._create()
            self._on_wait("a pod starts that reads the volume")
            self._pod = self._wait()
        except BaseException:
            self.delete()
            raise

    def delete(self) -> None:
        """Deletes the pod. If the cluster does not answer, the pod ends by itself."""
        if self._batch_job is not None:
            with suppress(ClusterError):
                self._client.connection.request(
                    "DELETE", _JOBS, self._job.namespace, self._batch_job, body={"propagationPolicy": "Background"}
                )
        self._batch_job = self._pod = None

    def _connect(self) -> socket.socket:
        with self._starting:
            if self._pod is None or not is_up(self._client, self._pod):
                self.start()
        assert self._pod is not None
        return self._client.connection.forward(self._job.namespace, self._pod["metadata"]["name"], PORT)

    def _create(self) -> None:
        job, head = self._job, self._head_spec()
        name = f"trainjob-reader-{secrets.token_hex(4)}"
        owner = {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND, "name": job.name, "uid": job.uid}
        folder = f"{STORAGE_PATH}/{run_name(job.name, job.uid)}"
        body = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "ownerReferences": [owner]},
            "spec": {
                "backoffLimit": 0,
                "ttlSecondsAfterFinished": _DELETED_AFTER_SECONDS,
                "template": {"spec": reader_pod(head, folder)},
            },
        }
        self._batch_job = name
        self._client.connection.request("POST", _JOBS, job.namespace, body=body)

    def _head_spec(self) -> KubernetesObject:
        """Spec of the head pod, from the RayJob."""
        name, namespace = self._job.status.ray_job_name, self._job.namespace
        try:
            if name is None:
                raise NotFound("", is_object=True)
            found = self._client.connection.request("GET", _RAY_JOBS, namespace, name)
        except NotFound:
            raise ClusterError(
                f"{self._job.name} has no RayJob any more, which tells the image that reads the volume: copy the run "
                "with `kubectl cp` from a pod that mounts the PersistentVolumeClaim"
            ) from None
        return found["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]

    def _wait(self) -> KubernetesObject:
        """The pod once it runs."""
        end, told = time.monotonic() + START_SECONDS, _STARTS
        while True:
            query = {"labelSelector": f"batch.kubernetes.io/job-name={self._batch_job}"}
            pods = self._client.connection.request("GET", PODS, self._job.namespace, query=query).get("items") or []
            status: dict[str, Any] = pods[0].get("status", {}) if pods else {}
            if status.get("phase") == "Running":
                return pods[0]
            reason, message = self._waiting(pods[0] if pods else None)
            if reason in _FINAL_REASONS or status.get("phase") == "Failed" or time.monotonic() >= end:
                raise ClusterError(f"the pod that reads the volume does not start: {reason}: {message}".rstrip(": "))
            if reason not in (_STARTS, told):
                self._on_wait(f"the pod that reads the volume waits: {reason}: {message}".rstrip(": "))
                told = reason
            time.sleep(_PAUSE_SECONDS)

    def _waiting(self, pod: KubernetesObject | None) -> tuple[str, str]:
        """Reason and message of what the pod waits for."""
        if pod is None:
            query = {"fieldSelector": f"involvedObject.name={self._batch_job}"}
            return self._last_warning(query) or (_STARTS, "")
        status = pod.get("status", {})
        states = [each.get("state", {}) for each in status.get("containerStatuses", ())]
        for state in states:
            for found in (state.get("waiting"), state.get("terminated")):
                if found and found.get("reason") not in (None, "ContainerCreating"):
                    return found["reason"], found.get("message", "")
        for condition in status.get("conditions", ()):
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                return condition.get("reason", "Unschedulable"), condition.get("message", "")
        return self._last_warning({"fieldSelector": f"involvedObject.uid={pod['metadata']['uid']}"}) or (_STARTS, "")

    def _last_warning(self, query: dict[str, str]) -> tuple[str, str] | None:
        try:
            events = self._client.connection.request("GET", EVENTS, self._job.namespace, query=query).get("items") or []
        except NotPermitted:
            return None
        warnings = [event for event in events if event.get("type") == "Warning"]
        return (warnings[-1].get("reason", ""), warnings[-1].get("message", "")) if warnings else None
