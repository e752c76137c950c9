"""When a job must have started and when it must be done: pure functions."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from trainjob.api import TrainJob
from trainjob.api.cluster import seconds
from trainjob.api.trainjob_status import TrainJobStatus, Waiting
from trainjob_operator.diagnosis import words_of_waiting
from trainjob_operator.errors import RayJobError
from trainjob_operator.head import time_of
from trainjob_operator.verdict import DELETING, HAVE_STARTED, Observed, Verdict, has_reported

KUBERAYS_TURN = timedelta(minutes=1)
"""How much longer KubeRay has to end an attempt whose pods are not ready in time: it then starts the next attempt, if
one is left. Where it cannot create an object, it looks again only after up to a quarter of an hour."""


def end_by_deadline(
    job: TrainJob, start: datetime | None, before: TrainJobStatus, observed: Observed, now: datetime
) -> Verdict | None:
    """How a job that was first allowed to start at `start` ends if one of its deadlines is over."""
    total, begin = total_deadline(job, start), start_deadline(job, start, before, observed)
    if total is not None and now >= total:
        return Verdict(
            "Failed", "DeadlineExceeded", f"not done within spec.deadlines.total, {job.spec.deadlines.total}"
        )
    if begin is not None and now >= begin:
        limit = job.spec.deadlines.start or f"{observed.start_seconds}s (the operator's default)"
        message = f"the driver has not started within spec.deadlines.start, {limit}"
        return Verdict("Failed", "PreRunningDeadlineExceeded", message)
    return None


def total_deadline(job: TrainJob, start: datetime | None) -> datetime | None:
    """When `spec.deadlines.total` is over for a job that was first allowed to start then."""
    total = job.spec.deadlines.total
    return None if total is None or start is None else later(start, timedelta(seconds=seconds(total)))


def start_deadline(
    job: TrainJob, start: datetime | None, before: TrainJobStatus, observed: Observed
) -> datetime | None:
    """When the present attempt's driver must have started; None where it has, or where the job is not to start now."""
    begin = None if observed.start_seconds is None else _begin_of_attempt(job, start, before, observed)
    return None if begin is None else later(begin, timedelta(seconds=observed.start_seconds or 0))


def later(time: datetime, by: timedelta) -> datetime:
    """That time moved by so much, or as far as a datetime goes: a status may hold any time."""
    try:
        return time + by
    except OverflowError:
        return (datetime.max if by > timedelta() else datetime.min).replace(tzinfo=UTC)


def with_reasons(message: str, waiting: Iterable[Waiting], error: RayJobError | None = None) -> str:
    """The message of a job that a deadline has ended, and what kept it from getting on until then."""
    reasons = [f"{each.reason}: {words_of_waiting(each)}" for each in waiting]
    if error is not None:
        reasons.append(f"{error.reason}: {error}")
    return f"{message}; it waited for {'; '.join(reasons)}" if reasons else message


def _begin_of_attempt(
    job: TrainJob, start: datetime | None, before: TrainJobStatus, observed: Observed
) -> datetime | None:
    ray_job = observed.ray_job
    if ray_job is None:  # one that was lost had its start already
        is_refused = observed.error is not None and observed.error.reason != DELETING
        return start if is_refused and before.ray_job_name is None else None
    ray = ray_job.get("status", {})
    if job.spec.suspend or ray_job["spec"].get("suspend") or "deletionTimestamp" in ray_job["metadata"]:
        return None
    match ray.get("jobDeploymentStatus", ""), ray.get("jobStatus", ""):
        case "", _ if "startTime" not in ray:  # KubeRay has not seen it
            return start
        case "Initializing", _:
            begin = time_of(ray.get("startTime"))
            return None if begin is None else later(begin, KUBERAYS_TURN)
        case "Running", ran if ran not in HAVE_STARTED and not has_reported(before.training, ray):
            return time_of(ray.get("startTime"))
        case _:
            return None
