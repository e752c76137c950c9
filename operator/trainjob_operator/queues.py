"""A job in a queue of Kueue: pure functions of the TrainJob, its RayJob and Kueue's Workloads."""

from collections.abc import Mapping, Sequence
from typing import Any

from trainjob.api import TrainJob
from trainjob_operator.errors import RayJobError
from trainjob_operator.names import QUEUE_LABEL

Object = Mapping[str, Any]


def with_kept_queue(job: TrainJob, ray_job: Object | None) -> tuple[TrainJob, RayJobError | None]:
    """`job` in the queue of its RayJob, and an error where it asks for another one or for none: Kueue refuses to change
    the queue of a RayJob that is not suspended."""
    kept = queue_of(ray_job)
    if ray_job is None or kept is None or ray_job.get("spec", {}).get("suspend"):
        return job, None
    if job.metadata.labels.get(QUEUE_LABEL) == kept:
        return job, None
    metadata = job.metadata.model_copy(update={"labels": job.metadata.labels | {QUEUE_LABEL: kept}})
    message = f"the label {QUEUE_LABEL} cannot change while the RayJob runs; it stays {kept}: suspend the job first"
    return job.model_copy(update={"metadata": metadata}), RayJobError("QueueChanged", message)


def queue_of(ray_job: Object | None) -> str | None:
    return ((ray_job or {}).get("metadata", {}).get("labels") or {}).get(QUEUE_LABEL)


def why_queued(job: TrainJob, workloads: Sequence[Object]) -> str:
    """Why a queue holds the job back."""
    for workload in workloads:
        if not workload.get("spec", {}).get("active", True):
            name = workload["metadata"]["name"]
            return _joined(f"the Workload {name} is deactivated: its spec.active is false", evictions_of(workloads))
        for condition in workload.get("status", {}).get("conditions", []):
            if condition["type"] in ("QuotaReserved", "Admitted") and condition["status"] == "False":
                return _joined(condition.get("message", ""), evictions_of(workloads))
    queue = job.metadata.labels.get(QUEUE_LABEL)
    return f"waits in the queue {queue}" if queue else "the RayJob is suspended by another controller"


def evictions_of(workloads: Sequence[Object]) -> str:
    """How often Kueue has evicted the job, and its words for the last time; empty where it has not."""
    for workload in workloads:
        status = workload.get("status", {})
        last = next((each for each in status.get("conditions", []) if each["type"] == "Evicted"), None)
        if last is None:
            continue
        counted = status.get("schedulingStats", {}).get("evictions", [])
        number = sum(each.get("count", 0) for each in counted)
        reasons = ", ".join(dict.fromkeys(each["reason"] for each in counted)) or last.get("reason", "")
        often = f"{number} times" if number > 1 else "once"
        return f"Kueue has evicted the job {often} ({reasons}): {last.get('message', '')}".removesuffix(": ")
    return ""


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
