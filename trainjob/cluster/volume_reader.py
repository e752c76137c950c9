"""A short-lived pod that mounts the volume of a job's run read-only, and sends its files to this machine."""

import atexit
import importlib.resources
import socket
import time
from collections.abc import Callable
from threading import Lock

from trainjob.api.cluster import STORAGE_PATH, KubernetesObject
from trainjob.api.names import GROUP, KIND, VERSION, run_name
from trainjob.api.resources import RAY_JOBS
from trainjob.cluster.client import ClusterClient
from trainjob.cluster.connection import NotFound
from trainjob.cluster.errors import ClusterError
from trainjob.cluster.head import is_up
from trainjob.cluster.job import ClusterJob
from trainjob.cluster.pod_http import PodConnectionPool
from trainjob.cluster.short_lived_pod import FINAL_REASONS, ShortLivedPod

PORT = 8931
START_SECONDS = 600
"""Timeout; the first pull of an image may take most of it."""
IDLE_SECONDS = 120
"""The pod ends after this many seconds without a request, if this process could not delete it."""
_PAUSE_SECONDS = 1.0
_STORAGE = "trainjob-storage"
_STARTS = "Starting"


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
    connect = f"import socket; socket.create_connection(('127.0.0.1', {PORT}))"
    probe = {
        "exec": {"command": ["python", "-c", connect]},
        "timeoutSeconds": 10,
        "periodSeconds": 1,
        "failureThreshold": 60,
    }
    replaced = {
        "name": "reader",
        "command": command,
        "resources": amounts,
        "startupProbe": probe,
        "volumeMounts": [mount],
    }
    return {name: head[name] for name in (*places, "serviceAccountName", "tolerations") if name in head} | {
        "automountServiceAccountToken": False,
        "containers": [{name: container[name] for name in kept if name in container} | replaced],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "volumes": [volume for volume in head["volumes"] if volume["name"] == _STORAGE],
    }


class VolumeReader:
    """The pod and a pool of connections to it. It starts again if it has ended, and is deleted with this process."""

    def __init__(self, client: ClusterClient, job: ClusterJob, on_wait: Callable[[str], None]) -> None:
        self._client, self._job, self._on_wait = client, job, on_wait
        self._reader: ShortLivedPod | None = None
        self._pod: KubernetesObject | None = None
        self._starting = Lock()
        self.pool = PodConnectionPool(self._connect)
        atexit.register(self.delete)

    def start(self) -> None:
        """Starts the pod and waits until it runs. Raises ClusterError if it does not start."""
        job = self._job
        owner = {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND, "name": job.name, "uid": job.uid}
        spec = reader_pod(self._head_spec(), f"{STORAGE_PATH}/{run_name(job.name, job.uid)}")
        self._reader = reader = ShortLivedPod(self._client.connection, job.namespace, "trainjob-reader")
        try:
            reader.create({"spec": spec}, {"ownerReferences": [owner]})
            self._on_wait("a pod starts that reads the volume")
            self._pod = self._wait(reader)
        except BaseException:
            self.delete()
            raise

    def delete(self) -> None:
        if self._reader is not None:
            self._reader.delete()
        self._reader = self._pod = None

    def _connect(self) -> socket.socket:
        with self._starting:
            if self._pod is None or not is_up(self._client, self._pod):
                self.start()
        assert self._pod is not None
        return self._client.connection.forward(self._job.namespace, self._pod["metadata"]["name"], PORT)

    def _head_spec(self) -> KubernetesObject:
        """Spec of the head pod, from the RayJob."""
        name, namespace = self._job.status.ray_job_name, self._job.namespace
        try:
            if name is None:
                raise NotFound("", is_object=True)
            found = self._client.connection.request("GET", RAY_JOBS, namespace, name)
        except NotFound:
            raise ClusterError(
                f"{self._job.name} no longer has a RayJob, which names the image that reads the volume: copy the run "
                "with `kubectl cp` from a pod that mounts the PersistentVolumeClaim"
            ) from None
        return found["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]

    def _wait(self, reader: ShortLivedPod) -> KubernetesObject:
        """The pod once its server answers."""
        end, told = time.monotonic() + START_SECONDS, _STARTS
        while True:
            pod = reader.find()
            phase = None if pod is None else pod.get("status", {}).get("phase")
            if pod is not None and any(each["ready"] for each in pod.get("status", {}).get("containerStatuses", ())):
                return pod
            reason, message = _waiting(pod, reader.events(pod))
            if reason in FINAL_REASONS or phase == "Failed" or time.monotonic() >= end:
                raise ClusterError(f"the pod that reads the volume does not start: {reason}: {message}".rstrip(": "))
            if reason not in (_STARTS, told):
                self._on_wait(f"the pod that reads the volume waits: {reason}: {message}".rstrip(": "))
                told = reason
            time.sleep(_PAUSE_SECONDS)


def _waiting(pod: KubernetesObject | None, events: list[KubernetesObject]) -> tuple[str, str]:
    """The reason why the pod waits, and its message."""
    status = {} if pod is None else pod.get("status", {})
    for state in (each.get("state", {}) for each in status.get("containerStatuses", ())):
        for found in (state.get("waiting"), state.get("terminated")):
            if found and found.get("reason") not in (None, "ContainerCreating"):
                return found["reason"], found.get("message", "")
    for condition in status.get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return condition.get("reason", "Unschedulable"), condition.get("message", "")
    warnings = [event for event in events if event.get("type") == "Warning"]
    return (warnings[-1].get("reason", ""), warnings[-1].get("message", "")) if warnings else (_STARTS, "")
