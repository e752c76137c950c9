"""A job's phase and reason: a pure function of its objects in the cluster."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from importlib.metadata import version

from trainjob.api import TrainJob
from trainjob.api.names import SUBMITTER_CONTAINER
from trainjob.api.training_status import Failure, TrainingStatus
from trainjob.api.trainjob_status import Phase, TrainJobStatus
from trainjob_operator.errors import RayJobError
from trainjob_operator.head import FIRST_REPORT, Object, head_loss, parse_time, ran_out_of_memory
from trainjob_operator.names import QUEUE_LABEL
from trainjob_operator.queues import queue_message
from trainjob_operator.render import has_failed_for_good

DELETING = "Deleting"
"""The reason of a TrainJob that is being deleted and gets no new RayJob."""

RAY_JOB_DELETING = "RayJobDeleting"
"""The reason of a TrainJob that waits for the deletion of a RayJob, its own or that of an earlier TrainJob of its
name."""

HEAD_TIMEOUT = "JobStatusCheckTimeoutExceeded"
"""KubeRay's reason for the end of a RayJob whose head has not answered for five minutes. Whatever its backoffLimit,
KubeRay 1.7 does not retry it, so the operator replaces it with another RayJob."""

_ENDED_PHASES = ("Succeeded", "Failed")
"""Phases of pods that have ended."""

STARTED_JOB_STATUSES = ("RUNNING", "SUCCEEDED", "FAILED", "STOPPED")
"""KubeRay's job statuses of a driver that has started. There are others, such as `Failure` when KubeRay asks through
the API server's proxy and the head does not respond."""

_NO_SUBMITTER = re.compile(r"No module named '?trainjob\b")
"""Python's message about an image without the module that submits the job."""

_KILLED = re.compile(r"exit code (137|-9)\b")
"""Ray's message about a driver that was killed."""


@dataclass(frozen=True)
class Observed:
    """The objects of one job in the cluster."""

    ray_job: Object | None = None
    pods: Sequence[Object] = ()
    events: Sequence[Object] = ()
    """Events about objects that are being created."""
    workloads: Sequence[Object] = ()
    """Kueue's Workloads, if the job is in one of its queues."""
    unreadable: Sequence[str] = ()
    """Descriptions of objects that could not be read and count as absent."""
    notes: Sequence[str] = ()
    """Fields of the spec that have no effect, and why."""
    error: RayJobError | None = None
    """Why there is no RayJob, or why it does not match the TrainJob."""
    start_seconds: int | None = None
    """The start deadline of an attempt: that of the RayJob, or the one that a RayJob would get."""


@dataclass(frozen=True)
class Verdict:
    """A job's phase, reason and message."""

    phase: Phase
    reason: str
    message: str = ""
    at: datetime | None = None
    """When the job reached this phase, if the cluster records it."""


SUSPENDED = Verdict("Suspended", "Suspended", "spec.suspend is true")
CANCELLED = Verdict("Failed", "Cancelled", "spec.cancel is true")


def verdict_of(job: TrainJob, before: TrainJobStatus, observed: Observed) -> Verdict:
    """The verdict without deadlines: the training process's own report has priority over KubeRay's status."""
    ray_job = observed.ray_job
    if has_finished(before.training):
        end = (ray_job or {}).get("status", {}).get("endTime")
        return Verdict("Succeeded", "Succeeded", "the model is trained", parse_time(end))
    if ray_job is not None:
        return _ray_job_verdict(job, before, ray_job, observed)
    if job.spec.cancel:
        return CANCELLED
    if observed.error is not None:
        return Verdict("Pending", observed.error.reason, str(observed.error))
    return SUSPENDED if job.spec.suspend else Verdict("Pending", "Created")


def has_finished(training: TrainingStatus | None) -> bool:
    """Whether the training process has reported that the model is trained."""
    return training is not None and training.stage == "Finished"


def has_reported(training: TrainingStatus | None, ray_status: Object) -> bool:
    """Whether a driver of the current attempt has reported. A failure that may be retried does not count."""
    started = parse_time(ray_status.get("startTime"))
    if training is None or training.updated_time is None or started is None:
        return False
    if training.failure is not None and training.failure.retryable:
        return False
    return training.updated_time >= started + FIRST_REPORT


def is_current(pod: Object, ray_status: Object) -> bool:
    """Whether a pod belongs to the current attempt: to its RayCluster or its submitter."""
    cluster = pod["metadata"].get("labels", {}).get("ray.io/cluster")
    return cluster is None or cluster == ray_status.get("rayClusterName")


def _ray_job_verdict(job: TrainJob, before: TrainJobStatus, ray_job: Object, observed: Observed) -> Verdict:
    """The verdict from KubeRay's status. The deployment status has priority, as the job status lags behind."""
    training, ray_status = before.training, ray_job.get("status", {})
    deployment = ray_status.get("jobDeploymentStatus", "")
    if deployment == "Complete":
        return _completed_verdict(training, ray_status, observed.pods)
    if deployment in ("Failed", "ValidationFailed"):
        failed = _failed_verdict(training, ray_status, ray_status.get("reason") or deployment, observed.pods)
        return replace(failed, phase="Retrying", at=None) if should_replace(job, before, ray_job) else failed
    if "deletionTimestamp" in ray_job["metadata"]:
        if observed.error is not None and observed.error.reason == DELETING:
            return Verdict("Pending", DELETING)
        return Verdict("Pending", RAY_JOB_DELETING, deletion_message(ray_job["metadata"]))
    if ray_job["spec"].get("suspend") or (job.spec.suspend and QUEUE_LABEL not in job.metadata.labels):
        return _suspended_verdict(job, before, observed)
    if deployment in ("Suspending", "Suspended"):
        return Verdict("Pending", "Resuming")
    if deployment == "Retrying":
        reason = ray_status.get("reason") or "Failed"
        return Verdict("Retrying", reason, _failed_verdict(training, ray_status, reason, observed.pods).message)
    if deployment == "Running":
        return _running_verdict(before, ray_status, observed.pods)
    if ray_status.get("failed", 0) > 0:
        return Verdict("Retrying", "PodsStarting", _next_attempt_message(before))
    return Verdict("Pending", "PodsStarting" if deployment else "Created")


def _running_verdict(before: TrainJobStatus, ray_status: Object, pods: Sequence[Object]) -> Verdict:
    """The verdict of a RayJob whose RayCluster runs."""
    training, job_status = before.training, ray_status.get("jobStatus", "")
    if job_status in ("SUCCEEDED", "STOPPED"):
        return Verdict("Running", "Finishing")
    if job_status == "FAILED":
        return Verdict("Running", "Finishing", _failed_verdict(training, ray_status, "AppFailed", pods).message)
    has_run = job_status == "RUNNING" or before.reason in ("Training", "HeadLost")
    if has_run and (loss := head_loss(_current_heads(pods, ray_status), before, ray_status)):
        return Verdict("Retrying", "HeadLost", f"{loss}; the driver will continue from the latest checkpoint")
    if job_status == "RUNNING" or has_reported(training, ray_status):
        return Verdict("Running", "Training")
    message = "; ".join(filter(None, ["waiting for the driver to start", _submitter_error(pods)]))
    return Verdict("Retrying" if ray_status.get("failed", 0) > 0 else "Starting", "PodsReady", message)


def should_replace(job: TrainJob, before: TrainJobStatus, ray_job: Object) -> bool:
    """Whether the operator must replace a RayJob that KubeRay has ended and does not retry."""
    ray_status = ray_job.get("status", {})
    has_timed_out = (ray_status.get("jobDeploymentStatus"), ray_status.get("reason")) == ("Failed", HEAD_TIMEOUT)
    may_retry = replacement_attempt(before) <= 1 + job.spec.retries and not has_failed_for_good(before.training)
    return has_timed_out and may_retry


def replacement_attempt(before: TrainJobStatus) -> int:
    """The number of the attempt that a replacement of the current RayJob makes. The status may show it already."""
    return (before.attempt or 1) + (before.reason != HEAD_TIMEOUT)


def _next_attempt_message(before: TrainJobStatus) -> str:
    """A message about the end of the last attempt, which KubeRay forgets when it starts the next one."""
    ending = "; the next attempt is starting"
    describes_end = before.reason in ("Finishing", "PreRunningDeadlineExceeded") or (
        before.phase == "Retrying" and not before.waiting
    )
    why = before.message if describes_end and before.message else "an attempt failed"
    return why.partition(ending)[0] + ending  # a list of unreadable objects may follow


def _completed_verdict(training: TrainingStatus | None, ray_status: Object, pods: Sequence[Object]) -> Verdict:
    """The verdict of a RayJob that is Complete. SUCCEEDED overrides a reported failure, which is from an earlier
    attempt."""
    end = parse_time(ray_status.get("endTime"))
    match ray_status.get("jobStatus", ""):
        case "SUCCEEDED":
            return Verdict("Succeeded", "Succeeded", ray_status.get("message", ""), end)
        case "STOPPED" if not has_failed_for_good(training):
            return Verdict("Failed", "Stopped", "the Ray job was stopped from outside", end)
        case _:
            return _failed_verdict(training, ray_status, ray_status.get("reason") or "Failed", pods)


def _failed_verdict(
    training: TrainingStatus | None, ray_status: Object, reason: str, pods: Sequence[Object]
) -> Verdict:
    """The verdict of a failed attempt, with the trainer's own message if it is about this failure."""
    message = ray_status.get("message", "")
    is_generic = reason in ("AppFailed", "Failed")
    head_was_killed = any(map(ran_out_of_memory, _current_heads(pods, ray_status)))
    if (head_was_killed and (is_generic or reason == "SubmissionFailed")) or _KILLED.search(message):
        message = f"the driver was killed, usually because the head pod ran out of memory: {message}"
    if training is not None and training.failure is not None and (is_generic or has_failed_for_good(training)):
        reason, message = "TrainingFailed", failure_message(training.failure)
    elif is_generic and not message:
        message = "the RayJob failed without a message from the driver or KubeRay"
    elif reason == "SubmissionFailed":
        message = "; ".join(filter(None, [_submitter_error(pods), message]))
    return Verdict("Failed", reason, message, parse_time(ray_status.get("endTime")))


def _submitter_error(pods: Sequence[Object]) -> str:
    """A description of a submitter pod's failure; empty if none has failed."""
    statuses = (each for pod in pods for each in pod.get("status", {}).get("containerStatuses", []))
    for container in statuses:
        ended = container.get("state", {}).get("terminated", {})
        if container["name"] != SUBMITTER_CONTAINER or not ended.get("exitCode"):
            continue
        last_line = (ended.get("message", "").strip().splitlines() or [f"exit code {ended['exitCode']}"])[-1]
        image, own_version = container.get("image"), version("trainjob")
        hint = f"; the image {image} has no trainjob, or an older one than the operator's, {own_version}"
        return f"the submitter pod failed: {last_line}{hint if _NO_SUBMITTER.search(last_line) else ''}"
    return ""


def failure_message(failure: Failure) -> str:
    """Describes a failure of training in one line."""
    where = "the driver" if failure.rank is None else f"worker {failure.rank}"
    return ": ".join(filter(None, [f"{where} failed", failure.exception, failure.message]))


def _suspended_verdict(job: TrainJob, before: TrainJobStatus, observed: Observed) -> Verdict:
    """The verdict of a suspended job, which has pods until KubeRay has deleted them. KubeRay may have forgotten those
    of a RayCluster that it created at the moment of the suspension."""
    remaining = [pod for pod in observed.pods if pod.get("status", {}).get("phase") not in _ENDED_PHASES]
    if remaining:
        phase = before.phase if before.phase in ("Starting", "Running", "Retrying") else "Pending"
        return Verdict(phase, "Suspending", f"pods that KubeRay has not deleted yet: {len(remaining)}")
    if job.spec.cancel:
        return CANCELLED
    return SUSPENDED if job.spec.suspend else Verdict("Suspended", "Queued", queue_message(job, observed.workloads))


def deletion_message(metadata: Object) -> str:
    """Describes a RayJob whose deletion blocks the creation of a new one."""
    message = f"RayJob {metadata['name']} is being deleted; a new one is created once it is gone"
    finalizers = ", ".join(metadata.get("finalizers", []))
    return f"{message}; its deletion waits for finalizers: {finalizers}" if finalizers else message


def ray_pods(pods: Sequence[Object], node_type: str) -> list[Object]:
    """The pods of Ray's node type `head` or `worker`."""
    return [pod for pod in pods if pod["metadata"].get("labels", {}).get("ray.io/node-type") == node_type]


def _current_heads(pods: Sequence[Object], ray_status: Object) -> list[Object]:
    return [pod for pod in ray_pods(pods, "head") if is_current(pod, ray_status)]
