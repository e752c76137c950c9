"""A TrainJob's status: a pure function of the TrainJob, its RayJob and pods, and the time."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from trainjob.api import TrainJob
from trainjob.api.cluster import seconds
from trainjob.api.training_status import TrainingStatus
from trainjob.api.trainjob_status import Condition, Phase, TrainJobStatus, WorkersStatus
from trainjob_operator.diagnosis import diagnose
from trainjob_operator.head import loss_of, ran_out_of_memory, time_of
from trainjob_operator.names import QUEUE_LABEL, WORKERS_ANNOTATION
from trainjob_operator.render import Unrenderable, has_failed_for_good

Object = Mapping[str, Any]

ConditionType = Literal["Accepted", "Complete", "Failed", "Suspended"]

FINAL: tuple[Phase, ...] = ("Succeeded", "Failed")

_KILLED = re.compile(r"exit code (137|-9)\b")
"""What Ray says of a driver that something else ended."""


@dataclass(frozen=True)
class Observed:
    """What the cluster holds of one job."""

    ray_job: Object | None = None
    pods: Sequence[Object] = ()
    events: Sequence[Object] = ()
    """Of those pods."""
    refused: Unrenderable | None = None
    """Why no RayJob could be made."""
    workloads: Sequence[Object] = ()
    """Kueue's, where the job is in one of its queues."""


@dataclass(frozen=True)
class Verdict:
    """Where a job stands and why."""

    phase: Phase
    reason: str
    message: str = ""
    at: datetime | None = None
    """When it came there, where the cluster says so."""


SUSPENDED = Verdict("Suspended", "Suspended", "spec.suspend is true")


def derive(job: TrainJob, generation: int, before: TrainJobStatus, observed: Observed, now: datetime) -> TrainJobStatus:
    """The status that `job` should have; `before` is what it has. A final verdict stays as it is."""
    if before.phase in FINAL:
        return before
    ray_job = observed.ray_job or {}
    ray: Object = ray_job.get("status", {})
    start = before.start_time or (None if job.spec.suspend or observed.ray_job is None else now)
    verdict = _verdict(job, before, ray_job, observed, start, now)
    final = verdict.phase in FINAL
    pods = [] if final else [pod for pod in observed.pods if _is_current(pod, ray)]
    waiting = (
        [] if final or verdict.phase == "Suspended" else diagnose(pods, ray.get("rayClusterStatus"), observed.events)
    )
    if waiting and verdict.phase in ("Pending", "Starting", "Retrying"):
        first = waiting[0]
        verdict = Verdict(verdict.phase, first.reason, _waiting_message(first.pods, first.message))
    return TrainJobStatus(
        phase=verdict.phase,
        reason=verdict.reason,
        message=verdict.message[:4096],
        conditions=_conditions(before.conditions, verdict, observed.refused, generation, now),
        observed_generation=generation,
        start_time=start,
        completion_time=(verdict.at or now) if final else None,
        attempt=_attempt(job, ray, before),
        ray_job_name=ray_job.get("metadata", {}).get("name", before.ray_job_name),
        ray_cluster_name=ray.get("rayClusterName") or None,
        dashboard_url=ray.get("dashboardURL") or None,
        workers=WorkersStatus(desired=job.spec.workers.count, ready=_ready_workers(job, pods)),
        waiting=waiting,
        training=before.training,
    )


def reject(before: TrainJobStatus, refused: Unrenderable, generation: int, now: datetime) -> TrainJobStatus:
    """The status of a TrainJob whose spec this operator cannot read."""
    verdict = Verdict("Pending", refused.reason, str(refused))
    update = {
        "phase": verdict.phase,
        "reason": verdict.reason,
        "message": verdict.message[:4096],
        "conditions": _conditions(before.conditions, verdict, refused, generation, now),
        "observed_generation": generation,
    }
    return before.model_copy(update=update)


def same(one: TrainJobStatus, other: TrainJobStatus) -> bool:
    """Whether the parts that the operator writes are alike."""
    return one.model_dump(exclude={"training"}) == other.model_dump(exclude={"training"})


def _verdict(
    job: TrainJob,
    before: TrainJobStatus,
    ray_job: Object,
    observed: Observed,
    start: datetime | None,
    now: datetime,
) -> Verdict:
    ray: Object = ray_job.get("status", {})
    training = before.training
    if training is not None and training.stage == "Finished":
        return Verdict("Succeeded", "Succeeded", "the model is trained", time_of(ray.get("endTime")))
    if _past(start, job.spec.deadlines.total, now):
        return Verdict(
            "Failed", "DeadlineExceeded", f"not done within spec.deadlines.total, {job.spec.deadlines.total}"
        )
    if observed.refused is not None:
        return Verdict("Pending", observed.refused.reason, str(observed.refused))
    if not ray_job:
        return SUSPENDED if job.spec.suspend else Verdict("Pending", "Created")
    return _of_ray_job(job, before, ray_job, observed)


def _of_ray_job(job: TrainJob, before: TrainJobStatus, ray_job: Object, observed: Observed) -> Verdict:
    """Reads KubeRay's status: its deployment status first, as its job status lags behind."""
    training, ray = before.training, ray_job.get("status", {})
    deployment, ran = ray.get("jobDeploymentStatus", ""), ray.get("jobStatus", "")
    retrying = ray.get("failed", 0) > 0
    if deployment == "Complete":
        return _of_end(training, ran, ray, observed.pods)
    if deployment in ("Failed", "ValidationFailed"):
        return _failed(training, ray, ray.get("reason") or deployment, observed.pods)
    if job.spec.suspend and (QUEUE_LABEL not in job.metadata.labels or ray_job["spec"].get("suspend")):
        return SUSPENDED
    if ray_job["spec"].get("suspend"):
        return Verdict("Suspended", *_queued(job, observed.workloads))
    if deployment in ("Suspending", "Suspended"):
        return Verdict("Pending", "Resuming")
    if deployment == "Retrying":
        reason = ray.get("reason") or "Failed"
        return Verdict("Retrying", reason, _failed(training, ray, reason, observed.pods).message)
    if deployment == "Running" and ran in ("SUCCEEDED", "FAILED", "STOPPED"):
        failed = _failed(training, ray, "AppFailed", observed.pods) if ran == "FAILED" else None
        return Verdict("Running", "Finishing", failed.message if failed else "")
    has_run = ran == "RUNNING" or before.reason in ("Training", "HeadLost")
    if deployment == "Running" and has_run and (loss := loss_of(_heads(observed.pods, ray), before, ray)):
        return Verdict("Retrying", "HeadLost", f"{loss}; the driver will continue from the latest checkpoint")
    if deployment == "Running" and ran == "RUNNING":
        return Verdict("Running", "Training")
    if deployment == "Running":
        return Verdict("Retrying" if retrying else "Starting", "PodsReady", "waiting for the driver to start")
    if retrying:
        return Verdict("Retrying", "PodsStarting", _next_attempt(before))
    return Verdict("Pending", "PodsStarting" if deployment else "Created")


def _next_attempt(before: TrainJobStatus) -> str:
    """What ended the last attempt: KubeRay forgets it once it starts the next one."""
    next_one = "; the next attempt is starting"
    tells_end = before.reason == "Finishing" or (before.phase == "Retrying" and not before.waiting)
    why = before.message if tells_end and before.message else "an attempt failed"
    return why if why.endswith(next_one) else why + next_one


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
    is_its_own = reason in ("AppFailed", "Failed") or has_failed_for_good(training)
    if training is not None and training.failure is not None and is_its_own:
        failure = training.failure
        where = "the driver" if failure.rank is None else f"worker {failure.rank}"
        reason, message = "TrainingFailed", f"{where} failed: {failure.exception}: {failure.message}"
    return Verdict("Failed", reason, message, time_of(ray.get("endTime")))


def _queued(job: TrainJob, workloads: Sequence[Object]) -> tuple[str, str]:
    """Why a queue holds the job back."""
    for workload in workloads:
        if not workload.get("spec", {}).get("active", True):
            return "Queued", f"the Workload {workload['metadata']['name']} is deactivated: its spec.active is false"
        for condition in workload.get("status", {}).get("conditions", []):
            if condition["type"] in ("QuotaReserved", "Admitted") and condition["status"] == "False":
                return "Queued", condition.get("message", "")
    queue = job.metadata.labels.get(QUEUE_LABEL)
    return "Queued", f"waits in the queue {queue}" if queue else "the RayJob is suspended by another controller"


def _conditions(
    before: Sequence[Condition], verdict: Verdict, refused: Unrenderable | None, generation: int, now: datetime
) -> list[Condition]:
    old = {condition.type: condition for condition in before}

    def condition(name: ConditionType, holds: bool, reason: str, message: str = "") -> Condition:
        status: Literal["True", "False"] = "True" if holds else "False"
        same = name in old and old[name].status == status
        return Condition(
            type=name,
            status=status,
            reason=reason,
            message=message[:4096],
            last_transition_time=old[name].last_transition_time if same else now,
            observed_generation=generation,
        )

    accepted = condition("Accepted", refused is None, refused.reason if refused else "Accepted", str(refused or ""))
    told: dict[ConditionType, bool] = {
        "Complete": verdict.phase == "Succeeded",
        "Failed": verdict.phase == "Failed",
        "Suspended": verdict.phase == "Suspended",
    }
    others = [
        condition(name, holds, verdict.reason if holds else "Not" + name, verdict.message if holds else "")
        for name, holds in told.items()
    ]
    return [accepted, *others]


def _attempt(job: TrainJob, ray: Object, before: TrainJobStatus) -> int:
    """KubeRay counts failures; the last failure has no attempt after it."""
    failed, is_over = ray.get("failed", 0), ray.get("jobDeploymentStatus") == "Failed"
    return max(before.attempt or 1, min(failed if is_over else failed + 1, job.spec.retries + 1))


def _is_current(pod: Object, ray: Object) -> bool:
    """Whether a pod is of the present attempt: its RayCluster's, or the submitter's."""
    cluster = pod["metadata"].get("labels", {}).get("ray.io/cluster")
    return cluster is None or cluster == ray.get("rayClusterName")


def _is_head(pod: Object) -> bool:
    return pod["metadata"].get("labels", {}).get("ray.io/node-type") == "head"


def _heads(pods: Sequence[Object], ray: Object) -> list[Object]:
    return [pod for pod in pods if _is_current(pod, ray) and _is_head(pod)]


def _ready_workers(job: TrainJob, pods: Sequence[Object]) -> int:
    group = [pod for pod in pods if pod["metadata"].get("labels", {}).get("ray.io/node-type") == "worker"]
    ready = sum(int(pod["metadata"]["annotations"][WORKERS_ANNOTATION]) for pod in group if _is_ready(pod))
    return min(job.spec.workers.count, ready)


def _is_ready(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _waiting_message(pods: int, message: str) -> str:
    return f"{pods} pod{'s' if pods != 1 else ''} waiting: {message}" if pods else message


def _past(start: datetime | None, deadline: str | None, now: datetime) -> bool:
    return start is not None and deadline is not None and now >= start + timedelta(seconds=seconds(deadline))
