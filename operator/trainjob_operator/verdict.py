"""Where a job stands and why: a pure function of what the cluster holds of it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from trainjob.api import TrainJob
from trainjob.api.training_status import Failure, TrainingStatus
from trainjob.api.trainjob_status import Phase, TrainJobStatus
from trainjob_operator.errors import RayJobError
from trainjob_operator.head import FIRST_REPORT, ran_out_of_memory, time_of, why_head_is_lost
from trainjob_operator.names import QUEUE_LABEL
from trainjob_operator.queues import why_queued
from trainjob_operator.render import has_failed_for_good

Object = Mapping[str, Any]

DELETING = "Deleting"
"""Why a TrainJob that is being deleted gets no other RayJob."""

RAY_JOB_DELETING = "RayJobDeleting"
"""The reason of a TrainJob whose RayJob, or that of a TrainJob that had its name before, is being deleted."""

_ENDED = ("Succeeded", "Failed")
"""Phases of pods that run no more."""

HAVE_STARTED = ("RUNNING", "SUCCEEDED", "FAILED", "STOPPED")
"""KubeRay's job statuses of a driver that has started. There may be others, as `Failure` where KubeRay asks through the
API server's proxy and the head does not answer."""

_KILLED = re.compile(r"exit code (137|-9)\b")
"""What Ray says of a driver that something else ended."""


@dataclass(frozen=True)
class Observed:
    """What the cluster holds of one job."""

    ray_job: Object | None = None
    pods: Sequence[Object] = ()
    events: Sequence[Object] = ()
    """Of those pods."""
    workloads: Sequence[Object] = ()
    """Kueue's, where the job is in one of its queues."""
    unreadable: Sequence[str] = ()
    """What could not be read, and why: it counts as absent."""
    error: RayJobError | None = None
    """Why there is no RayJob, or why it is not what the TrainJob asks for."""
    start_seconds: int | None = None
    """How long an attempt's start may take: the RayJob's own limit, or the one that a RayJob would get."""


@dataclass(frozen=True)
class Verdict:
    """Where a job stands and why."""

    phase: Phase
    reason: str
    message: str = ""
    at: datetime | None = None
    """When it came there, where the cluster says so."""


SUSPENDED = Verdict("Suspended", "Suspended", "spec.suspend is true")


def verdict_of(job: TrainJob, before: TrainJobStatus, observed: Observed) -> Verdict:
    """The verdict, but for deadlines: the training process's own report first, then KubeRay's status."""
    ray_job = observed.ray_job
    if has_finished(before.training):
        end = (ray_job or {}).get("status", {}).get("endTime")
        return Verdict("Succeeded", "Succeeded", "the model is trained", time_of(end))
    if ray_job is not None:
        return _of_ray_job(job, before, ray_job, observed)
    if observed.error is not None:
        return Verdict("Pending", observed.error.reason, str(observed.error))
    return SUSPENDED if job.spec.suspend else Verdict("Pending", "Created")


def has_finished(training: TrainingStatus | None) -> bool:
    """Whether the training process itself says that the model is trained."""
    return training is not None and training.stage == "Finished"


def has_reported(training: TrainingStatus | None, ray: Object) -> bool:
    """Whether a driver of the present attempt has reported; a failure that is still there may be an earlier one's."""
    begun = time_of(ray.get("startTime"))
    if training is None or training.failure is not None or training.updated_time is None or begun is None:
        return False
    return training.updated_time >= begun + FIRST_REPORT


def is_current(pod: Object, ray: Object) -> bool:
    """Whether a pod is of the present attempt: its RayCluster's, or the submitter's."""
    cluster = pod["metadata"].get("labels", {}).get("ray.io/cluster")
    return cluster is None or cluster == ray.get("rayClusterName")


def _of_ray_job(job: TrainJob, before: TrainJobStatus, ray_job: Object, observed: Observed) -> Verdict:
    """Reads KubeRay's status: its deployment status first, as its job status lags behind."""
    training, ray = before.training, ray_job.get("status", {})
    deployment, ran = ray.get("jobDeploymentStatus", ""), ray.get("jobStatus", "")
    retrying = ray.get("failed", 0) > 0
    if deployment == "Complete":
        return _of_end(training, ran, ray, observed.pods)
    if deployment in ("Failed", "ValidationFailed"):
        return _failed(training, ray, ray.get("reason") or deployment, observed.pods)
    if "deletionTimestamp" in ray_job["metadata"]:
        if observed.error is not None and observed.error.reason == DELETING:
            return Verdict("Pending", DELETING)
        return Verdict("Pending", RAY_JOB_DELETING, deletion_of(ray_job["metadata"]))
    if ray_job["spec"].get("suspend") or (job.spec.suspend and QUEUE_LABEL not in job.metadata.labels):
        return _suspended(job, before, observed)
    if deployment in ("Suspending", "Suspended"):
        return Verdict("Pending", "Resuming")
    if deployment == "Retrying":
        reason = ray.get("reason") or "Failed"
        return Verdict("Retrying", reason, _failed(training, ray, reason, observed.pods).message)
    if deployment == "Running" and ran in ("SUCCEEDED", "FAILED", "STOPPED"):
        failed = _failed(training, ray, "AppFailed", observed.pods) if ran == "FAILED" else None
        return Verdict("Running", "Finishing", failed.message if failed else "")
    has_run = ran == "RUNNING" or before.reason in ("Training", "HeadLost")
    if deployment == "Running" and has_run and (loss := why_head_is_lost(_heads(observed.pods, ray), before, ray)):
        return Verdict("Retrying", "HeadLost", f"{loss}; the driver will continue from the latest checkpoint")
    if deployment == "Running" and (ran == "RUNNING" or has_reported(training, ray)):
        return Verdict("Running", "Training")
    if deployment == "Running":
        return Verdict("Retrying" if retrying else "Starting", "PodsReady", "waiting for the driver to start")
    if retrying:
        return Verdict("Retrying", "PodsStarting", _next_attempt(before))
    return Verdict("Pending", "PodsStarting" if deployment else "Created")


def _next_attempt(before: TrainJobStatus) -> str:
    """What ended the last attempt: KubeRay forgets it once it starts the next one."""
    next_one = "; the next attempt is starting"
    tells_end = before.reason in ("Finishing", "PreRunningDeadlineExceeded") or (
        before.phase == "Retrying" and not before.waiting
    )
    why = before.message if tells_end and before.message else "an attempt failed"
    return why.partition(next_one)[0] + next_one  # what could not be read may follow it


def _of_end(training: TrainingStatus | None, ran: str, ray: Object, pods: Sequence[Object]) -> Verdict:
    """SUCCEEDED means that the driver ended well: a failure that is still told is an earlier attempt's."""
    match ran:
        case "SUCCEEDED":
            return Verdict("Succeeded", "Succeeded", ray.get("message", ""), time_of(ray.get("endTime")))
        case "STOPPED" if not has_failed_for_good(training):
            return Verdict("Failed", "Stopped", "the Ray job was stopped from outside", time_of(ray.get("endTime")))
        case _:
            return _failed(training, ray, ray.get("reason") or "Failed", pods)


def _failed(training: TrainingStatus | None, ray: Object, reason: str, pods: Sequence[Object]) -> Verdict:
    """In the trainer's own words, where they are about this end."""
    message = ray.get("message", "")
    lost = any(map(ran_out_of_memory, _heads(pods, ray))) and reason in ("AppFailed", "Failed", "SubmissionFailed")
    if lost or _KILLED.search(message):
        message = f"the driver was killed, as a rule because the head pod ran out of memory: {message}"
    is_unspecific = reason in ("AppFailed", "Failed")
    if training is not None and training.failure is not None and (is_unspecific or has_failed_for_good(training)):
        reason, message = "TrainingFailed", words_of(training.failure)
    elif is_unspecific and not message:
        message = "the RayJob failed, and neither the driver nor KubeRay has said why"
    return Verdict("Failed", reason, message, time_of(ray.get("endTime")))


def words_of(failure: Failure) -> str:
    """A failure of training in one line."""
    where = "the driver" if failure.rank is None else f"worker {failure.rank}"
    return ": ".join(filter(None, [f"{where} failed", failure.exception, failure.message]))


def _suspended(job: TrainJob, before: TrainJobStatus, observed: Observed) -> Verdict:
    """A suspended job still has pods for as long as KubeRay has not deleted them. It may have forgotten those of a
    RayCluster that it created in the moment in which the job was suspended."""
    left = [pod for pod in observed.pods if pod.get("status", {}).get("phase") not in _ENDED]
    if left:
        phase = before.phase if before.phase in ("Starting", "Running", "Retrying") else "Pending"
        return Verdict(phase, "Suspending", f"pods that KubeRay has yet to delete: {len(left)}")
    return SUSPENDED if job.spec.suspend else Verdict("Suspended", "Queued", why_queued(job, observed.workloads))


def deletion_of(metadata: Object) -> str:
    """What to say of a RayJob that is being deleted and has the name of the one to create."""
    message = f"RayJob {metadata['name']} is being deleted; another one is created once it is gone"
    finalizers = ", ".join(metadata.get("finalizers", []))
    return f"{message}, which its finalizers hold up: {finalizers}" if finalizers else message


def of_kind(pods: Sequence[Object], kind: str) -> list[Object]:
    """Those that are Ray's `head` or `worker`."""
    return [pod for pod in pods if pod["metadata"].get("labels", {}).get("ray.io/node-type") == kind]


def _heads(pods: Sequence[Object], ray: Object) -> list[Object]:
    return [pod for pod in of_kind(pods, "head") if is_current(pod, ray)]
