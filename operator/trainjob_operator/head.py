"""What becomes of a job's head pod, where the driver runs: pure functions of what the cluster holds."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from trainjob.api.trainjob_status import TrainJobStatus
from trainjob_operator.pods import HEAD_CONTAINER

Object = Mapping[str, Any]

FIRST_REPORT = timedelta(seconds=5)
"""Before that a new head has no driver yet, while the driver of a head that was deleted by force may still report."""


def why_head_is_lost(heads: Sequence[Object], before: TrainJobStatus, ray: Object) -> str | None:
    """Why the head, and the driver with it, is lost and created again, if it is; KubeRay goes on saying RUNNING.

    `heads` are the head pods of the present RayCluster, `before` the TrainJob's and `ray` the RayJob's status.
    """
    running = [head for head in heads if _is_running(head)]
    doubtful = before.reason == "HeadLost" or any(_container(head).get("restartCount") for head in running)
    has_driver = any(_has_driver(head, before, ray) for head in running) if doubtful else bool(running)
    if not heads or has_driver:
        return None
    return f"the head pod {'ran out of memory' if any(map(ran_out_of_memory, heads)) else 'was lost'}"


def head_uid(pods: Sequence[Object], cluster: str | None, before: TrainJobStatus) -> str | None:
    """UID of the head pod of the RayCluster `cluster`, by its owner: names and labels can be copied.
    While there is none, or pods cannot be read, it is that of `before`."""
    heads = [pod for pod in pods if cluster is not None and _is_head_of(pod, cluster)]
    newest = max(heads, key=lambda head: ("deletionTimestamp" not in head["metadata"], _created(head)), default=None)
    if newest is not None:
        return newest["metadata"]["uid"]
    return before.head_pod_uid if cluster is not None and cluster == before.ray_cluster_name else None


def _is_head_of(pod: Object, cluster: str) -> bool:
    metadata = pod["metadata"]
    owner = next((each for each in metadata.get("ownerReferences", ()) if each.get("controller")), {})
    is_owned = (owner.get("kind"), owner.get("name")) == ("RayCluster", cluster)
    is_rays = owner.get("apiVersion", "").startswith("ray.io/")
    return is_owned and is_rays and metadata.get("labels", {}).get("ray.io/node-type") == "head"


def _created(pod: Object) -> str:
    return pod["metadata"].get("creationTimestamp", "")


def ran_out_of_memory(head: Object) -> bool:
    """Whether that is how its container has ended or last ended."""
    ends = [_container(head).get(state, {}).get("terminated", {}) for state in ("state", "lastState")]
    return any(end.get("reason") == "OOMKilled" for end in ends)


def time_of(text: str | None) -> datetime | None:
    """What Kubernetes writes as a time; None of what it takes as one and Python does not, such as the year 0."""
    with suppress(ValueError, OverflowError):
        return None if text is None else datetime.fromisoformat(text).astimezone(UTC)


def _is_running(head: Object) -> bool:
    is_up = "running" in _container(head).get("state", {"running": {}})
    return is_up and "deletionTimestamp" not in head["metadata"] and head.get("status", {}).get("phase") == "Running"


def _has_driver(head: Object, before: TrainJobStatus, ray: Object) -> bool:
    """Whether Ray has taken the job, or the driver has reported, since the head's container started."""
    start = time_of(_container(head).get("state", {}).get("running", {}).get("startedAt"))
    submitted = time_of(ray.get("rayJobInfo", {}).get("startTime"))
    reported = before.training.updated_time if before.training is not None else None
    if start is None:
        return False
    return (submitted is not None and submitted >= start) or (reported is not None and reported >= start + FIRST_REPORT)


def _container(head: Object) -> Object:
    """The status of Ray's container, which may have others beside it."""
    statuses = head.get("status", {}).get("containerStatuses", [])
    return next((each for each in statuses if each["name"] == HEAD_CONTAINER), {})
