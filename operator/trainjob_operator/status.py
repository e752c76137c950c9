"""Derives a TrainJob's status: a pure function of the TrainJob, its objects in the cluster, and the time."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from trainjob.api import TrainJob
from trainjob.api.training_status import TrainingStatus
from trainjob.api.trainjob_status import FINAL, Interruptions, TrainJobStatus, Waiting, WorkersStatus
from trainjob_operator.conditions import conditions_of, with_generation
from trainjob_operator.deadlines import add_clamped, deadline_verdict, with_waiting_reasons
from trainjob_operator.diagnosis import diagnose, waiting_message
from trainjob_operator.head import head_uid
from trainjob_operator.interruptions import interruption_message, is_ready, update_interruptions
from trainjob_operator.names import QUEUE_LABEL, SPEC_ANNOTATION, WORKERS_ANNOTATION
from trainjob_operator.queues import eviction_message
from trainjob_operator.refusals import refusals, unexplained_wait
from trainjob_operator.render import storage_of
from trainjob_operator.snapshot import workers_of
from trainjob_operator.verdict import (
    HEAD_TIMEOUT,
    Object,
    Observed,
    Verdict,
    failure_message,
    is_current,
    ray_pods,
    replacement_attempt,
    should_replace,
    verdict_of,
)

DEADLINE_REASONS = ("DeadlineExceeded", "PreRunningDeadlineExceeded")
"""Reasons of a job or an attempt that was ended by a deadline."""

NO_WORKLOAD = (
    "Kueue has not created a Workload for it yet; if this lasts, check that Kueue runs with the integration "
    "ray.io/rayjob"
)


def derive(job: TrainJob, generation: int, before: TrainJobStatus, observed: Observed, now: datetime) -> TrainJobStatus:
    """The new status of `job`; `before` is its current one. A final phase never changes."""
    if before.phase in FINAL:
        conditions = with_generation(before.conditions, generation)
        return before.model_copy(update={"observed_generation": generation, "conditions": conditions})
    ray_job = observed.ray_job or {}
    ray_status: Object = ray_job.get("status", {})
    verdict = verdict_of(job, before, observed)
    start = _start_time(job, before, verdict, observed, now)
    pods = [pod for pod in observed.pods if is_current(pod, ray_status)]
    cluster = ray_status.get("rayClusterName") or None
    waiting = _waiting_reasons(verdict, pods, observed, now)
    by_deadline = deadline_verdict(job, start, before, observed, now) if _has_deadlines(verdict) else None
    verdict = by_deadline or verdict
    if verdict.reason in DEADLINE_REASONS:
        waiting = waiting if by_deadline else before.waiting  # KubeRay has deleted the pods by its own deadline
        refusal = observed.error if observed.ray_job is None else None
        verdict = replace(verdict, message=with_waiting_reasons(verdict.message, waiting, refusal))
    final = verdict.phase in FINAL
    pods = [] if final else pods
    workers = WorkersStatus(desired=job.spec.worker_slots, ready=_ready_workers(job, pods))
    interruptions = before.interruptions
    if not observed.unreadable:
        interruptions = update_interruptions(before, verdict.reason, cluster, workers, pods, now)
    if verdict.reason == "Training":
        verdict = replace(verdict, message="; ".join(_training_messages(job, before.training, interruptions)))
    is_over = verdict.reason in (*DEADLINE_REASONS, HEAD_TIMEOUT)
    if waiting and verdict.phase in ("Pending", "Starting", "Retrying") and not is_over:
        first = waiting[0]
        verdict = Verdict(verdict.phase, first.reason, waiting_message(first))
    if not final:
        verdict = replace(verdict, message=_with_problems(verdict, job, observed))
    return TrainJobStatus(
        phase=verdict.phase,
        reason=verdict.reason,
        message=verdict.message[:4096],
        conditions=conditions_of(before.conditions, verdict, observed.error, generation, now),
        observed_generation=generation,
        start_time=start,
        completion_time=min(verdict.at or now, now) if final else None,
        attempt=(
            replacement_attempt(before)
            if not final and should_replace(job, before, ray_job)
            else _attempt(ray_status, before)
        ),
        ray_job_name=ray_job.get("metadata", {}).get("name", before.ray_job_name),
        ray_cluster_name=cluster,
        head_pod_uid=head_uid(pods, cluster, before),
        dashboard_url=ray_status.get("dashboardURL") or None,
        storage=storage_of(observed.ray_job) or before.storage,
        workers=workers,
        waiting_since=(before.waiting_since or now) if _is_waiting(verdict) else None,
        waiting=waiting,
        interruptions=interruptions,
        notifications=before.notifications,
        training=before.training,
    )


def same_operator_fields(one: TrainJobStatus, other: TrainJobStatus) -> bool:
    """Whether the fields that the operator writes are equal."""
    return one.model_dump(exclude={"training"}) == other.model_dump(exclude={"training"})


def is_starting(pod: Object) -> bool:
    """Whether a pod has a node but does not run yet: only its Events may explain why."""
    return pod.get("status", {}).get("phase") == "Pending" and bool(pod["spec"].get("nodeName"))


def _training_messages(
    job: TrainJob, training: TrainingStatus | None, interruptions: Interruptions | None
) -> Iterator[str]:
    if training is not None and training.failure is not None:
        yield f"{failure_message(training.failure)}; waiting for KubeRay to end the attempt, or for the next to report"
    if interruptions is not None:
        yield f"{interruption_message(interruptions)} at {interruptions.last_time:%Y-%m-%dT%H:%M:%SZ}"
        yield "training continues from its latest checkpoint, so its progress may go back"
    count, size = job.spec.workers.count, training.workers if training is not None else None
    if job.spec.workers.minimum is not None and size is not None and size < count:
        yield f"{size} of {count} workers train: more join when their pods can run"


def _waiting_reasons(verdict: Verdict, pods: Sequence[Object], observed: Observed, now: datetime) -> list[Waiting]:
    """The reasons why an unfinished job is not running."""
    if verdict.phase in FINAL or verdict.reason in ("Suspended", "Queued", "Suspending"):
        return []
    ray_job = observed.ray_job
    if ray_job is None:
        return []
    refused = refusals(ray_job, pods, observed.events)
    waiting = diagnose(pods, ray_job.get("status", {}).get("rayClusterStatus"), observed.events, refused)
    return waiting if waiting or observed.unreadable else unexplained_wait(ray_job, pods, now)


def _is_waiting(verdict: Verdict) -> bool:
    """Whether the job waits for something other than its user's decision to resume it."""
    return verdict.phase in ("Pending", "Starting", "Retrying") or verdict.reason == "Queued"


def _has_deadlines(verdict: Verdict) -> bool:
    return verdict.phase not in FINAL and verdict.reason not in ("Finishing", "Queued")


def _start_time(
    job: TrainJob, before: TrainJobStatus, verdict: Verdict, observed: Observed, now: datetime
) -> datetime | None:
    """When the job was first free to start, shifted by the time it has spent in a queue since."""
    is_queued = verdict.reason == "Queued"
    if before.start_time is None:
        is_free = observed.ray_job is not None or observed.error is not None
        return now if is_free and not is_queued and not job.spec.suspend else None
    if before.reason != "Queued" or is_queued:
        return before.start_time
    since = next((each.last_transition_time for each in before.conditions if each.type == "Suspended"), now)
    return add_clamped(before.start_time, now - since)


def _attempt(ray_status: Object, before: TrainJobStatus) -> int:
    """The number of the current attempt. KubeRay counts failures; the last one is not followed by an attempt."""
    failed, is_over = ray_status.get("failed", 0), ray_status.get("jobDeploymentStatus") == "Failed"
    return max(before.attempt or 1, failed if is_over else failed + 1)


def _ready_workers(job: TrainJob, pods: Sequence[Object]) -> int:
    group = filter(is_ready, ray_pods(pods, "worker"))
    numbers = [pod["metadata"].get("annotations", {}).get(WORKERS_ANNOTATION, "") for pod in group]
    ready = sum(int(number) for number in numbers if re.fullmatch("[0-9]{1,6}", number))
    return min(job.spec.worker_slots, ready)


def _with_problems(verdict: Verdict, job: TrainJob, observed: Observed) -> str:
    """The verdict's message, followed by other problems."""
    problems = [*observed.unreadable, *observed.notes]
    ray_job, queue = observed.ray_job, job.metadata.labels.get(QUEUE_LABEL)
    if queue and not observed.workloads and not observed.unreadable and ray_job:
        if verdict.reason == "Queued":
            problems.append(NO_WORKLOAD)
        elif job.spec.suspend and not ray_job["spec"].get("suspend"):
            problems.append(f"spec.suspend waits for the queue {queue}; {NO_WORKLOAD}")
    if ray_job is not None and _has_other_workers(ray_job, observed.pods):
        problems.append(
            "spec.workers was changed: the new value takes effect in the next attempt, or when the job is resumed"
        )
    if verdict.phase in ("Pending", "Starting", "Retrying"):
        problems.append(eviction_message(observed.workloads))
    if ray_job is not None and observed.error is not None:
        problems.append(f"the RayJob stays as it is: {observed.error}")
    return "; ".join(message for message in (verdict.message, *problems) if message)


def _has_other_workers(ray_job: Object, pods: Sequence[Object]) -> bool:
    """Whether the current attempt was started with other workers than the RayJob has now: KubeRay does not update
    pods."""
    wanted: Object = ray_job["spec"].get("rayClusterSpec", {}).get("headGroupSpec", {}).get("template", {})
    current = [pod for pod in ray_pods(pods, "head") if is_current(pod, ray_job.get("status", {}))]
    others = [pod for pod in current if _snapshot(pod) not in (None, _snapshot(wanted))]
    return any(workers_of(pod) != workers_of(wanted) is not None for pod in others)


def _snapshot(pod: Object) -> str | None:
    return pod.get("metadata", {}).get("annotations", {}).get(SPEC_ANNOTATION)
