"""Deadlines for the start and the end of a job: pure functions."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from trainjob.api import TrainJob
from trainjob.api.cluster import seconds
from trainjob.api.training_status import TrainingStatus
from trainjob.api.trainjob_status import TrainJobStatus, Waiting
from trainjob_operator.diagnosis import waiting_message
from trainjob_operator.errors import RayJobError
from trainjob_operator.head import parse_time
from trainjob_operator.render import has_failed_for_good
from trainjob_operator.verdict import (
    DELETING,
    STARTED_JOB_STATUSES,
    Object,
    Observed,
    Verdict,
    failure_message,
    has_reported,
)

KUBERAY_GRACE = timedelta(minutes=1)
"""Extra time for KubeRay to see a RayJob, or to end an attempt whose pods are not ready in time, so that it can start
the next attempt. If it cannot create an object, it may retry only after 15 minutes."""

KUBERAY_END_GRACE = timedelta(minutes=5)
"""How long KubeRay may take to end a RayJob after the training process has reported its end. If it cannot create the
RayJob's Service, for example, it never polls the job's state and holds the pods for good."""


def deadline_verdict(
    job: TrainJob, start: datetime | None, before: TrainJobStatus, observed: Observed, now: datetime
) -> Verdict | None:
    """The final verdict if one of the job's deadlines has passed. `start` is when the job was first free to start."""
    total_limit, start_limit = total_deadline(job, start), start_deadline(job, start, before, observed)
    training, failure_limit = before.training, failure_deadline(before.training, observed.ray_job)
    is_failed = failure_limit is not None and now >= min(failure_limit, total_limit or failure_limit)
    if is_failed and training is not None and training.failure is not None:
        return Verdict("Failed", "TrainingFailed", failure_message(training.failure), training.updated_time)
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


def failure_deadline(training: TrainingStatus | None, ray_job: Object | None) -> datetime | None:
    """When KubeRay must have ended an attempt whose training has failed for good. None if it has not failed, or if the
    job is suspended."""
    if training is None or training.updated_time is None or ray_job is None or ray_job["spec"].get("suspend"):
        return None
    ray_status = ray_job.get("status", {})
    is_over = has_failed_for_good(training) and has_reported(training, ray_status)
    is_held = is_over and ray_status.get("jobDeploymentStatus") == "Running"
    return add_clamped(training.updated_time, KUBERAY_END_GRACE) if is_held else None


def add_clamped(time: datetime, by: timedelta) -> datetime:
    """`time` + `by`, clamped to the range of datetime: a status may hold any time."""
    try:
        return time + by
    except OverflowError:
        return (datetime.max if by > timedelta() else datetime.min).replace(tzinfo=UTC)


def with_waiting_reasons(message: str, waiting: Iterable[Waiting], error: RayJobError | None = None) -> str:
    """Adds the reason that the job was waiting to the message of a deadline."""
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
    ray_status = ray_job.get("status", {})
    if job.spec.suspend or ray_job["spec"].get("suspend") or "deletionTimestamp" in ray_job["metadata"]:
        return None
    match ray_status.get("jobDeploymentStatus", ""), ray_status.get("jobStatus", ""):
        case "", _ if "startTime" not in ray_status:  # KubeRay has not seen the RayJob yet
            return None if start is None else add_clamped(start, KUBERAY_GRACE)
        case "Initializing", _:
            started = parse_time(ray_status.get("startTime"))
            return None if started is None else add_clamped(started, KUBERAY_GRACE)
        case "Running", ran if ran not in STARTED_JOB_STATUSES and not has_reported(before.training, ray_status):
            return parse_time(ray_status.get("startTime"))
        case _:
            return None
