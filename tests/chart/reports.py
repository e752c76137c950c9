"""Reports of a training's progress, as a service account sends them."""

import json
from typing import Any

from kubernetes import client, config
from releases import Object, signed_in

from cluster.control_plane import ControlPlane
from cluster.jobs import document

CLUSTER = "job-abcde"
TIME = "2026-01-01T00:00:00Z"
CONDITION = {"type": "Accepted", "status": "True", "reason": "Created", "message": "", "lastTransitionTime": TIME}
STATUS: Object = {
    "phase": "Running",
    "reason": "Training",
    "message": "training",
    "conditions": [CONDITION],
    "observedGeneration": 1,
    "startTime": TIME,
    "completionTime": TIME,
    "attempt": 1,
    "rayJobName": "job",
    "rayClusterName": CLUSTER,
    "headPodUID": "head",
    "dashboardURL": "job-head-svc.team.svc:8265",
    "storage": {"uri": "s3://runs", "secretName": "s3"},
    "workers": {"desired": 2, "ready": 2},
    "interruptions": {"count": 1, "lastReason": "OOMKilled", "lastPod": "job-worker", "lastTime": TIME},
    "waitingSince": TIME,
    "notifications": [{"id": "1", "receiver": 0, "event": "Failed", "time": TIME, "reason": "AppFailed"}],
    "waiting": [{"reason": "Unschedulable", "pods": 1, "message": "0/1 nodes"}],
    "training": {"stage": "Training", "percent": 10},
}
"""Every field of a status."""
PROGRESS: Object = {"training": {"stage": "Training", "percent": 50}}


def send(cluster: ControlPlane, bearer: str, namespace: str, name: str, body: Object, content: str, **query: Any):
    """Patches a TrainJob's status as the one who has the token; raises ApiException where that is refused."""
    with config.new_client_from_config_dict(signed_in(cluster, bearer)) as connection:
        client.CustomObjectsApi(connection).patch_namespaced_custom_object_status(
            "trainjob.dev", "v1alpha1", namespace, "trainjobs", name, body, _content_type=content, **query
        )


def refusal(*arguments: Any, **query: Any) -> str:
    """Returns the API server's reason for a refusal, or an empty text."""
    try:
        send(*arguments, **query)
    except client.ApiException as error:
        if error.status != 403:
            raise
        return json.loads(str(error.body))["message"]
    return ""


def patch(cluster: ControlPlane, bearer: str, namespace: str, status: Object, name: str = "job") -> str:
    return refusal(cluster, bearer, namespace, name, {"status": status}, "application/merge-patch+json")


def make_job(cluster: ControlPlane, namespace: str, name: str, status: Object, **spec: Any) -> None:
    cluster.kubectl("apply", "--namespace", namespace, "--filename=-", stdin=json.dumps(document(name, **spec)))
    change = json.dumps({"status": status})
    options = ("--namespace", namespace, "--subresource=status", "--type=merge", "--patch", change)
    cluster.kubectl("patch", "trainjob", name, *options)
