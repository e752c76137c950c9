"""The state of a job's head pod, where the driver runs: pure functions of the cluster's objects."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from trainjob.api.trainjob_status import TrainJobStatus
from trainjob_operator.pods import HEAD_CONTAINER

Object = Mapping[str, Any]
"""An object of the Kubernetes API, or a part of one, that is only read."""

FIRST_REPORT = timedelta(seconds=5)
"""How soon after its start a head may have a driver. Earlier reports come from the driver of a head that was
force-deleted."""


def head_loss(heads: Sequence[Object], before: TrainJobStatus, ray_status: Object) -> str | None:
    """A message if the head, and with it the driver, was lost and is being created again; KubeRay keeps reporting
    RUNNING.

    `heads` are the head pods of the current RayCluster, `before` is the TrainJob's status, `ray_status` the RayJob's.
    """
    running = [head for head in heads if _is_running(head)]
    # a head that was restarted or replaced runs again before it has a driver
    is_new = before.reason == "HeadLost" or any(_container(head).get("restartCount") for head in running)
    has_driver = any(_has_driver(head, before, ray_status) for head in running) if is_new else bool(running)
    if not heads or has_driver:
        return None
    return f"the head pod {'ran out of memory' if any(map(ran_out_of_memory, heads)) else 'was lost'}"


def head_uid(pods: Sequence[Object], cluster: str | None, before: TrainJobStatus) -> str | None:
    """UID of the head pod of the RayCluster `cluster`, identified by its owner, as names and labels can be forged. If
    there is none at the moment, or pods cannot be read, the UID in `before`."""
    heads = [pod for pod in pods if cluster is not None and _is_head_of(pod, cluster)]
    newest = max(
        heads,
        key=lambda head: ("deletionTimestamp" not in head["metadata"], head["metadata"].get("creationTimestamp", "")),
        default=None,
    )
    if newest is not None:
        return newest["metadata"]["uid"]
    return before.head_pod_uid if cluster is not None and cluster == before.ray_cluster_name else None


def _is_head_of(pod: Object, cluster: str) -> bool:
    metadata = pod["metadata"]
    owner = next((each for each in metadata.get("ownerReferences", ()) if each.get("controller")), {})
    is_owned = (owner.get("kind"), owner.get("name")) == ("RayCluster", cluster)
    is_ray_owner = owner.get("apiVersion", "").startswith("ray.io/")
    return is_owned and is_ray_owner and metadata.get("labels", {}).get("ray.io/node-type") == "head"


def ran_out_of_memory(head: Object) -> bool:
    """Whether the head's container was last terminated by the OOM killer."""
    ends = [_container(head).get(state, {}).get("terminated", {}) for state in ("state", "lastState")]
    return any(end.get("reason") == "OOMKilled" for end in ends)


def parse_time(text: str | None) -> datetime | None:
    """Parses a Kubernetes timestamp. None for one that Kubernetes accepts and Python does not, such as the year 0."""
    with suppress(ValueError, OverflowError):
        return None if text is None else datetime.fromisoformat(text).astimezone(UTC)


def _is_running(head: Object) -> bool:
    is_up = "running" in _container(head).get("state", {"running": {}})
    return is_up and "deletionTimestamp" not in head["metadata"] and head.get("status", {}).get("phase") == "Running"


def _has_driver(head: Object, before: TrainJobStatus, ray_status: Object) -> bool:
    """Whether Ray has accepted the job, or the driver has reported, since the head's container started."""
    start = parse_time(_container(head).get("state", {}).get("running", {}).get("startedAt"))
    submitted = parse_time(ray_status.get("rayJobInfo", {}).get("startTime"))
    reported = before.training.updated_time if before.training is not None else None
    if start is None:
        return False
    return (submitted is not None and submitted >= start) or (reported is not None and reported >= start + FIRST_REPORT)


def _container(head: Object) -> Object:
    """The status of Ray's container, which may be one of several."""
    statuses = head.get("status", {}).get("containerStatuses", [])
    return next((each for each in statuses if each["name"] == HEAD_CONTAINER), {})
