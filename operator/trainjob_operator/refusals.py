"""Objects that KubeRay and the Job controller could not create for a job, from their Events: pure functions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from trainjob.api.trainjob_status import Waiting
from trainjob_operator.head import parse_time
from trainjob_operator.interruptions import is_ready
from trainjob_operator.verdict import STARTED_JOB_STATUSES, Object, is_current

SILENCE_LIMIT = timedelta(seconds=30)
"""How long KubeRay may take to create a RayCluster's first pod before the wait is reported."""

_NEVER = datetime.min.replace(tzinfo=UTC)

EventSource = tuple[str, str]
"""Kind and name of the object that an Event is about."""


def event_sources(ray_job: Object, pods: Sequence[Object]) -> dict[EventSource, Sequence[str]]:
    """Objects whose Events may explain why the job's next object does not exist yet, each with prefixes of the relevant
    reasons. Empty if nothing is being created. Events of earlier steps are irrelevant."""
    name, ray_status = ray_job["metadata"]["name"], ray_job.get("status", {})
    deployment, cluster = ray_status.get("jobDeploymentStatus"), ray_status.get("rayClusterName", "")
    current = [pod for pod in pods if is_current(pod, ray_status)]
    nodes = [pod for pod in current if "ray.io/node-type" in pod["metadata"].get("labels", {})]
    if deployment == "Initializing" and not nodes:
        return {("RayJob", name): ["FailedToCreateRayCluster"], ("RayCluster", cluster): ["FailedToCreate", "Invalid"]}
    if deployment == "Initializing" and all(map(is_ready, nodes)):
        return {("RayJob", name): ["FailedToCreateRayJobSubmitter"]}
    job_status = ray_status.get("jobStatus", "")
    if deployment == "Running" and job_status not in STARTED_JOB_STATUSES:
        needs_service, needs_submitter = not job_status, len(current) == len(nodes)
        sources = {
            ("RayJob", name): ["FailedToCreateService", "FailedToUpdateService"] if needs_service else [],
            ("Job", name): ["FailedCreate"] if needs_submitter else [],
        }
        return {source: reasons for source, reasons in sources.items() if reasons}
    return {}


def refusals(ray_job: Object, pods: Sequence[Object], events: Iterable[Object]) -> Iterator[tuple[str, str]]:
    """Reason and message of the latest Event of each source in the current attempt.

    KubeRay 1.7 keeps the first message of a repeated Event. It may also try to create an object that its cache does not
    show yet; such an "already exists" is not a refusal.
    """
    sources, started = event_sources(ray_job, pods), _attempt_start(ray_job) or _NEVER
    latest: dict[EventSource, Object] = {}
    for event in sorted(events, key=_last_seen):
        source, message = event_source(event), event.get("message", "")
        is_relevant = event.get("reason", "").startswith(tuple(sources.get(source, ())))
        if is_relevant and _last_seen(event) >= started and not message.endswith("already exists"):
            latest[source] = event
    for (kind, _), event in latest.items():
        prefix = "the pod that submits the job: " if kind == "Job" else ""
        yield event["reason"], prefix + event.get("message", "")


def unexplained_wait(ray_job: Object, pods: Sequence[Object], now: datetime) -> list[Waiting]:
    """Reports that KubeRay has created no pods for a while without an Event. It creates none if it cannot create the
    Secret with the cluster's token."""
    kinds, started = {kind for kind, _ in event_sources(ray_job, pods)}, _attempt_start(ray_job)
    if "RayCluster" not in kinds or started is None or now - started < SILENCE_LIMIT:
        return []
    message = "KubeRay has not created any pod, and no Event says why: check the log of its operator"
    why = "it may be busy, or unable to create the Secret with the cluster's token"
    return [Waiting(reason="PodsNotCreated", pods=0, message=f"{message}; {why}")]


def _attempt_start(ray_job: Object) -> datetime | None:
    """When the current attempt started."""
    return parse_time(ray_job.get("status", {}).get("startTime"))


def event_source(event: Object) -> EventSource:
    involved = event["involvedObject"]
    return involved.get("kind", ""), involved.get("name", "")


def _last_seen(event: Mapping[str, Any]) -> datetime:
    """When an Event was last seen. The field depends on the API that it was written with."""
    series, metadata = event.get("series") or {}, event.get("metadata", {})
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    found = next(filter(None, times), metadata.get("creationTimestamp"))
    return parse_time(found) or _NEVER
