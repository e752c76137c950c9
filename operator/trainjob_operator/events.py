"""Kubernetes Events of a TrainJob: what `kubectl describe` lists."""

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

from trainjob.api.job_status import TrainJobStatus
from trainjob.api.trainjob import GROUP, KIND, VERSION
from trainjob_operator.api import EVENTS, Api
from trainjob_operator.names import MANAGER


def news(before: TrainJobStatus, after: TrainJobStatus) -> Iterator[tuple[str, str, bool]]:
    """Reason and message of the events that a change of status is worth, and whether they warn."""
    message = after.message or after.reason or ""
    if before.ray_job_name is None and after.ray_job_name is not None:
        yield "Created", f"made RayJob {after.ray_job_name}", False
    fails_again = after.phase == "Retrying" and before.attempt != after.attempt
    if before.phase != after.phase or fails_again:
        match after.phase:
            case "Running":
                yield "Started", f"training runs, attempt {after.attempt}", False
            case "Retrying" | "Failed":
                yield after.phase, f"{after.reason}: {message}", True
            case "Suspended" | "Succeeded":
                yield after.phase, message, False
            case _:
                pass
    if after.waiting and [item.reason for item in before.waiting] != [item.reason for item in after.waiting]:
        yield "Waiting", f"{after.waiting[0].reason}: {message}", True


async def emit(api: Api, job: Mapping[str, Any], reason: str, message: str, warning: bool) -> None:
    """Records an event of the TrainJob that has the metadata `job`."""
    namespace, now = job["namespace"], api.now.strftime("%Y-%m-%dT%H:%M:%SZ")
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{job['name'][:200]}.{uuid4().hex[:16]}", "namespace": namespace},
        "involvedObject": {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": KIND,
            "name": job["name"],
            "namespace": namespace,
            "uid": job["uid"],
        },
        "type": "Warning" if warning else "Normal",
        "reason": reason,
        "message": message[:1024],
        "source": {"component": MANAGER},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
    await api.create(EVENTS, namespace, event)
