"""TrainJobs and what a cluster holds of them, as the operator gets to see them."""

from typing import Any

from trainjob.api import TrainJob

Object = dict[str, Any]

UID = "11111111-2222-3333-4444-555555555555"

OF_KUBERAY = (
    "SubmissionFailed",
    "AppFailed",
    "DeadlineExceeded",
    "PreRunningDeadlineExceeded",
    "ValidationFailed",
    "JobStatusCheckTimeoutExceeded",
    "JobDeploymentStatusTransitionGracePeriodExceeded",
    "FailedCreateHeadPod",
    "FailedCreateWorkerPod",
)
"""Reasons that KubeRay gives for a RayJob's failure or wait."""


def document(metadata: Object | None = None, **spec: Any) -> Object:
    """A TrainJob in a cluster, with these fields of its spec."""
    spec = {"model": {"function": {"name": "train:loop"}}, "storage": {"uri": "s3://runs"}, **spec}
    spec.setdefault("training", {"batchSize": spec.get("workers", {}).get("count", 1)})
    return {
        "apiVersion": "trainjob.dev/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "job", "namespace": "team", "uid": UID, **(metadata or {})},
        "spec": spec,
    }


def trainjob(metadata: Object | None = None, **spec: Any) -> TrainJob:
    return TrainJob.model_validate(document(metadata, **spec), strict=True, by_alias=True, by_name=False)


def pod(name: str = "worker", *, labels: Object | None = None, node: str | None = None, **status: Any) -> Object:
    """A worker's pod that is on its way, with these fields of its status."""
    own = {"ray.io/cluster": "job-abcde", "ray.io/node-type": "worker"}
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-of-{name}",
            "labels": own if labels is None else labels,
            "annotations": {"trainjob.dev/workers": "2"},
        },
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": "Pending", **status},
    }


def container(name: str = "ray-worker", reason: str | None = None, message: str | None = None, **more: Any) -> Object:
    """The status of a container that waits."""
    waiting = {key: value for key, value in {"reason": reason, "message": message}.items() if value is not None}
    return {"name": name, "state": {"waiting": waiting}, **more}


def ray_job(deployment: str = "", ran: str = "", *, suspend: bool = False, **status: Any) -> Object:
    """A RayJob as KubeRay writes its status: what is empty is left out."""
    told = {"jobDeploymentStatus": deployment, "jobStatus": ran, "rayClusterName": "job-abcde", **status}
    return {
        "metadata": {"name": "job"},
        "spec": {"suspend": suspend},
        "status": {name: value for name, value in told.items() if value},
    }
