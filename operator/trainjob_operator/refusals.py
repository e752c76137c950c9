"""What KubeRay and the Job controller could not create for a job, as their Events say: pure functions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from trainjob.api.trainjob_status import Waiting
from trainjob_operator.head import time_of
from trainjob_operator.interruptions import is_ready
from trainjob_operator.verdict import HAVE_STARTED, Object, is_current

SILENT = timedelta(seconds=30)
"""How long KubeRay may take to create a RayCluster's first pod before its silence is reported."""

_NEVER = datetime.min.replace(tzinfo=UTC)

Source = tuple[str, str]
"""Kind and name of an object that has Events."""


def sources_of(ray_job: Object, pods: Sequence[Object]) -> dict[Source, Sequence[str]]:
    """Objects whose Events may say why the job's next object does not exist yet, each with the prefixes of the reasons
    that count. Empty while nothing is to be created. Events of earlier steps are over and do not count."""
    name, ray = ray_job["metadata"]["name"], ray_job.get("status", {})
    deployment, cluster = ray.get("jobDeploymentStatus"), ray.get("rayClusterName", "")
    current = [pod for pod in pods if is_current(pod, ray)]
    of_ray = [pod for pod in current if "ray.io/node-type" in pod["metadata"].get("labels", {})]
    if deployment == "Initializing" and not of_ray:
        return {("RayJob", name): ["FailedToCreateRayCluster"], ("RayCluster", cluster): ["FailedToCreate", "Invalid"]}
    if deployment == "Initializing" and all(map(is_ready, of_ray)):
        return {("RayJob", name): ["FailedToCreateRayJobSubmitter"]}
    ran = ray.get("jobStatus", "")
    if deployment == "Running" and ran not in HAVE_STARTED:
        of_ray_job = [] if ran else ["FailedToCreateService", "FailedToUpdateService"]
        of_job = ["FailedCreate"] if len(current) == len(of_ray) else []
        sources = {("RayJob", name): of_ray_job, ("Job", name): of_job}
        return {source: reasons for source, reasons in sources.items() if reasons}
    return {}


def refusals(ray_job: Object, pods: Sequence[Object], events: Iterable[Object]) -> Iterator[tuple[str, str]]:
    """Reason and message of the latest Event of each source in the present attempt. KubeRay 1.7 leaves the message of
    an Event that repeats itself as it was at first, and may try to create an object that its cache does not show yet,
    which is no refusal."""
    sources, begun, latest = sources_of(ray_job, pods), _begin(ray_job), dict[Source, Object]()
    for event in sorted(events, key=_time):
        source = source_of(event)
        counts = event.get("reason", "").startswith(tuple(sources.get(source, ())))
        if counts and _time(event) >= (begun or _NEVER) and not event.get("message", "").endswith("already exists"):
            latest[source] = event
    for (kind, _), event in latest.items():
        what = "the pod that submits the job: " if kind == "Job" else ""
        yield event["reason"], what + event.get("message", "")


def silence(ray_job: Object, pods: Sequence[Object], now: datetime) -> list[Waiting]:
    """Says that KubeRay creates no pods. It makes no Event where it cannot create the Secret with the cluster's token,
    so nothing else may tell."""
    kinds, begun = {kind for kind, _ in sources_of(ray_job, pods)}, _begin(ray_job)
    if "RayCluster" not in kinds or begun is None or now - begun < SILENT:
        return []
    message = "KubeRay has created no pod, and no Event says why: see the log of its operator"
    why = "it may be busy, or unable to create the Secret with the cluster's token"
    return [Waiting(reason="PodsNotCreated", pods=0, message=f"{message}; {why}")]


def _begin(ray_job: Object) -> datetime | None:
    """When the present attempt began."""
    return time_of(ray_job.get("status", {}).get("startTime"))


def source_of(event: Object) -> Source:
    involved = event["involvedObject"]
    return involved.get("kind", ""), involved.get("name", "")


def _time(event: Mapping[str, Any]) -> datetime:
    """When an Event was last seen; its fields depend on the API that it was written by."""
    series, metadata = event.get("series") or {}, event.get("metadata", {})
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    found = next(filter(None, times), metadata.get("creationTimestamp"))
    return time_of(found) or _NEVER
