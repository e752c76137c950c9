"""Deadlines for the start and the end of a job: pure functions."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from trainjob.api import TrainJob
from trainjob.api.cluster import seconds
from trainjob.api.trainjob_status import TrainJobStatus, Waiting
from trainjob_operator.diagnosis import waiting_message
from trainjob_operator.errors import RayJobError
from trainjob_operator.head import parse_time
from trainjob_operator.verdict import DELETING, STARTED_JOB_STATUSES, Observed, Verdict, has_reported

KUBERAY_GRACE = timedelta(minutes=1)
"""Extra time for KubeRay to end an attempt whose pods are not ready in time, so that it can start the next attempt. If
it cannot create an object, it may retry only after 15 minutes."""


def deadline_verdict(
    job: TrainJob, start: datetime | None, before: TrainJobStatus, observed: Observed, now: datetime
) -> Verdict | None:
    """The final verdict if one of the job's deadlines has passed. `start` is when the job was first free to start."""
    total_limit, start_limit = total_deadline(job, start), start_deadline(job, start, before, observed)
    if total_limit is not None and now >= total_limit:
        return Verdict(
            "Failed", "DeadlineExceeded", f"not done within spec.deadlines.total, {job.spec.deadlines.total}"
        )
    if start_limit is not None and now >= start_limit:
        limit = job.spec.deadlines.start or f"{observed.start_seconds}s (the operator's default)"
        message = f"the driver has not started within spec.deadlines.start, {limit}"
        return Verdict("Failed", "PreRunningDeadlineExceeded", message)
    return None


def total_deadline(job: TrainJob, start: datetime | None) -> datetime | None:
    """When `spec.deadlines.total` ends for a job that was first free to start at `start`."""
    total = job.spec.deadlines.total
    return None if total is None or start is None else add_clamped(start, timedelta(seconds=seconds(total)))


def start_deadline(
    job: TrainJob, start: datetime | None, before: TrainJobStatus, observed: Observed
) -> datetime | None:
    """When the driver of the current attempt must have started; None if it has, or if the job should not start now."""
    started = None if observed.start_seconds is None else _attempt_start(job, start, before, observed)
    return None if started is None else add_clamped(started, timedelta(seconds=observed.start_seconds or 0))


def add_clamped(time: datetime, by: timedelta) -> datetime:
    """`time` + `by`, clamped to the range of datetime: a status may hold any time."""
    try:
        return time + by
    except OverflowError:
        return (datetime.max if by > timedelta() else datetime.min).replace(tzinfo=UTC)


def with_waiting_reasons(message: str, waiting: Iterable[Waiting], error: RayJobError | None = None) -> str:
    """Adds what the job was waiting for to the message of a deadline."""
    reasons = [f"{each.reason}: {waiting_message(each)}" for each in waiting]
    if error is not None:
        reasons.append(f"{error.reason}: {error}")
    return f"{message}; it waited for {'; '.join(reasons)}" if reasons else message


def _attempt_start(
    job: TrainJob, start: datetime | None, before: TrainJobStatus, observed: Observed
) -> datetime | None:
    ray_job = observed.ray_job
    if ray_job is None:  # if it was deleted, the job has already started once
        is_refused = observed.error is not None and observed.error.reason != DELETING
        return start if is_refused and before.ray_job_name is None else None
    ray = ray_job.get("status", {})
    if job.spec.suspend or ray_job["spec"].get("suspend") or "deletionTimestamp" in ray_job["metadata"]:
        return None
    match ray.get("jobDeploymentStatus", ""), ray.get("jobStatus", ""):
        case "", _ if "startTime" not in ray:  # KubeRay has not seen the RayJob yet
            return start
        case "Initializing", _:
            started = parse_time(ray.get("startTime"))
            return None if started is None else add_clamped(started, KUBERAY_GRACE)
        case "Running", ran if ran not in STARTED_JOB_STATUSES and not has_reported(before.training, ray):
            return parse_time(ray.get("startTime"))
        case _:
            return None
