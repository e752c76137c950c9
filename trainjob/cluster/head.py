"""The pod of a job's running head, where Ray's dashboard listens."""

from base64 import b64decode

from trainjob.api.cluster import KubernetesObject
from trainjob.api.names import UID_LABEL
from trainjob.api.resources import PODS, SECRETS
from trainjob.cluster.client import ClusterClient
from trainjob.cluster.connection import NotFound
from trainjob.cluster.errors import ClusterError
from trainjob.cluster.job import ClusterJob

DASHBOARD_PORT = 8265
_TOKEN = "RAY_AUTH_TOKEN"
"""Variable of Ray's token, which KubeRay sets from a Secret."""


def running_head(client: ClusterClient, job: ClusterJob, options: str = "") -> KubernetesObject:
    """The pod. Raises ClusterError if there is none, with the reason and what to look at instead; `options` name the
    cluster and namespace in the commands that it suggests."""
    name = f"{job.name}{options}"
    if job.has_ended:
        raise ClusterError(
            f"{job.name} has ended ({job.phase_and_reason}), and its pods are gone with Ray's dashboard: "
            f"`trainjob report {name}` and `trainjob logs {name} --rank all` read what it has left"
        )
    selector = {"labelSelector": f"{UID_LABEL}={job.uid}", "limit": "500"}
    pods = client.connection.request("GET", PODS, job.namespace, query=selector).get("items") or []
    head = next((pod for pod in pods if pod["metadata"]["uid"] == job.status.head_pod_uid), None)
    if head is not None and is_running(head):
        return head
    why = job.message or ("its head pod is starting" if head is not None else "it has no head pod yet")
    raise ClusterError(
        f"{job.name} has no running head, so there is no dashboard ({job.phase_and_reason}: {why}): "
        f"`trainjob describe {name}` shows more"
    )


def is_running(pod: KubernetesObject) -> bool:
    return "deletionTimestamp" not in pod["metadata"] and pod.get("status", {}).get("phase") == "Running"


def is_up(client: ClusterClient, head: KubernetesObject) -> bool:
    """Whether this very pod still runs."""
    metadata = head["metadata"]
    try:
        now = client.connection.request("GET", PODS, metadata["namespace"], metadata["name"])
    except NotFound:
        return False
    return now["metadata"]["uid"] == metadata["uid"] and is_running(now)


def ray_token(client: ClusterClient, head: KubernetesObject) -> str | None:
    """The token that Ray requires in this pod; None if it requires none. Raises ClusterError."""
    for container in head["spec"]["containers"]:
        for variable in container.get("env") or ():
            source = (variable.get("valueFrom") or {}).get("secretKeyRef")
            if variable["name"] == _TOKEN and source is not None:
                secret = client.connection.request("GET", SECRETS, head["metadata"]["namespace"], source["name"])
                return b64decode(secret["data"][source["key"]]).decode()
    return None
