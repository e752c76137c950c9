"""Pods lost during training: pure functions of two statuses and the cluster's objects."""

from collections.abc import Sequence
from datetime import datetime

from trainjob.api.trainjob_status import Interruptions, TrainJobStatus, WorkersStatus
from trainjob_operator.head import Object
from trainjob_operator.verdict import ray_pods


def update_interruptions(
    before: TrainJobStatus,
    reason: str,
    cluster: str | None,
    workers: WorkersStatus,
    pods: Sequence[Object],
    now: datetime,
) -> Interruptions | None:
    """The interruptions so far, plus one if the head was lost during training, or if fewer workers are ready than
    before although as many are desired. `reason` is the job's current reason; `pods` belong to its RayCluster
    `cluster`."""
    if before.reason != "Training" or before.ray_cluster_name != cluster:
        return before.interruptions
    if reason == "HeadLost":
        candidates = ray_pods(pods, "head")
    elif reason == "Training" and workers.ready < min(_ready_before(before), workers.desired):
        candidates = [pod for pod in ray_pods(pods, "worker") if not is_ready(pod)]
    else:
        return before.interruptions
    losses = ((pod["metadata"]["name"], why) for pod in candidates if (why := _loss_reason(pod)))
    pod, why = next(losses, (None, "Deleted"))
    count = before.interruptions.count if before.interruptions is not None else 0
    return Interruptions(count=count + 1, last_reason=why, last_pod=pod, last_time=now)


def interruption_message(interruptions: Interruptions) -> str:
    """Describes the last interruption."""
    pod = f"pod {interruptions.last_pod}" if interruptions.last_pod else "a pod"
    return f"{pod} was lost ({interruptions.last_reason})"


def is_ready(pod: Object) -> bool:
    """Whether a pod is ready and not being deleted."""
    conditions = pod.get("status", {}).get("conditions", [])
    is_deleted = "deletionTimestamp" in pod["metadata"]
    return not is_deleted and any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _ready_before(before: TrainJobStatus) -> int:
    return before.workers.ready if before.workers is not None else 0


def _loss_reason(pod: Object) -> str | None:
    """Why a pod was lost; None if it is healthy or a replacement that is still starting."""
    status = pod.get("status", {})
    conditions = {each["type"]: each for each in status.get("conditions", [])}
    states = (each.get(state, {}) for each in status.get("containerStatuses", []) for state in ("state", "lastState"))
    end_reasons = [state["terminated"].get("reason", "Failed") for state in states if "terminated" in state]
    if status.get("phase") == "Failed" or end_reasons:
        return status.get("reason") or next(iter(end_reasons), "Failed")
    if "deletionTimestamp" in pod["metadata"]:
        return conditions.get("DisruptionTarget", {}).get("reason", "Deleted")
    if status.get("phase") != "Running" or is_ready(pod):
        return None
    containers_are_ready = conditions.get("ContainersReady", {}).get("status") == "True"
    return "NodeLost" if containers_are_ready else "NotReady"
