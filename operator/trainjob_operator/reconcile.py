"""Reconciles a TrainJob: brings its RayJob in line with the spec and writes the status.

Every reconciliation reads everything from the API server and keeps no state, so it can be interrupted anywhere and
repeated at any time.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from trainjob.api import TrainJob
from trainjob.api.cluster import KubernetesObject, seconds
from trainjob.api.resources import TRAIN_JOBS
from trainjob.api.trainjob_status import FINAL, Notification, TrainJobStatus, read_status
from trainjob_operator.api import WORKLOADS, Api
from trainjob_operator.deadlines import KUBERAY_END_GRACE, add_clamped, failure_deadline, start_deadline, total_deadline
from trainjob_operator.errors import RayJobError
from trainjob_operator.events import Recorder, change_origin, events_for_change
from trainjob_operator.head import parse_time
from trainjob_operator.metrics import START_SECONDS
from trainjob_operator.notifications import next_waiting_time, with_notifications
from trainjob_operator.observe import observe
from trainjob_operator.queues import hold_queue, queue_of, was_deactivated_by_operator, with_queue
from trainjob_operator.ray_jobs import RayJobs, should_create
from trainjob_operator.receivers import receivers_of, refused_receivers
from trainjob_operator.refusals import event_sources
from trainjob_operator.render import start_seconds, storage_of, with_storage
from trainjob_operator.settings import Settings
from trainjob_operator.snapshot import keep_config
from trainjob_operator.status import derive, is_starting, same_operator_fields
from trainjob_operator.train_job import is_managed_by_another, read_train_job, status_patch
from trainjob_operator.verdict import DELETING, Observed, should_replace

STARTING_REQUEUE_SECONDS = 4.0
"""While pods are starting: Events, which are not watched, may explain why they do not."""
REFUSED_REQUEUE_SECONDS = 15.0
NOTIFYING_REQUEUE_SECONDS = 5.0
MAX_REQUEUE_SECONDS = 300.0
"""A watch does not report deletions during a long interruption."""

REASONS_TO_DELETE = ("DeadlineExceeded", "PreRunningDeadlineExceeded", "ValidationFailed", "Cancelled")
"""Final reasons of a TrainJob after which KubeRay leaves the pods running, or could start them again."""

Key = tuple[str, str]
"""Namespace and name of a TrainJob."""

logger = logging.getLogger("trainjob.operator")


@dataclass(frozen=True)
class Reconciler:
    """Reconciles TrainJobs one at a time."""

    api: Api
    settings: Settings
    recorder: Recorder
    notify: Callable[[Key, Sequence[Notification]], None] = lambda *_: None
    """Is called with a TrainJob and its notifications."""

    async def reconcile(self, key: Key) -> float | None:
        """Returns the seconds until the next reconciliation, or None."""
        body = await self.api.get(TRAIN_JOBS, *key)
        if body is None or is_managed_by_another(body):
            return None
        job, invalid = read_train_job(body)
        if job.spec.cancel:  # suspended first, which lets the workers save a checkpoint
            job = job.model_copy(update={"spec": job.spec.model_copy(update={"suspend": True})})
        if "deletionTimestamp" in body["metadata"]:
            invalid = RayJobError(DELETING, "the TrainJob is being deleted")
        before, unreadable = read_status(body)
        if before.phase in FINAL:
            status = derive(job, body["metadata"]["generation"], before, Observed(), self.api.now)
            await self._write_status(body, before, status, change_origin(before, None))
            self.notify(key, status.notifications)
            return await self._clean_up(job, status)
        ray_job, error = await self._ensure_ray_job(job, before, invalid)
        job = job if ray_job is None else with_queue(job, queue_of(ray_job))
        observed = await observe(self.api, job, ray_job)
        observed = replace(
            observed,
            unreadable=[*unreadable, *observed.unreadable],
            notes=[*refused_receivers(job, self.settings.notify)],
            error=error,
            start_seconds=start_seconds(job, ray_job, self.settings),
        )
        status = derive(job, body["metadata"]["generation"], before, observed, self.api.now)
        if status.phase in FINAL and not await self._is_unchanged(body):
            return 0.0  # training may have reported its end after the TrainJob was read and before the RayJob was
        origin, receivers = change_origin(before, ray_job), receivers_of(job, self.settings.notify)
        status = with_notifications(before, status, receivers, origin, self.api.now)
        await self._write_status(body, before, status, origin)
        self.notify(key, status.notifications)
        if status.phase in FINAL:
            return await self._clean_up(job, status)
        if ray_job is not None and should_replace(job, before, ray_job):
            await RayJobs(self.api, self.settings).delete(ray_job)
        await self._suspend_in_queue(job, observed.workloads)
        again = requeue_after(job, status, observed, self.api.now)
        waiting = next_waiting_time(status, receivers)
        return again if waiting is None else min(again, max(0.0, (waiting - self.api.now).total_seconds()))

    async def _ensure_ray_job(
        self, job: TrainJob, before: TrainJobStatus, invalid: RayJobError | None
    ) -> tuple[KubernetesObject | None, RayJobError | None]:
        """The current RayJob, and an error if it does not match the TrainJob. An existing RayJob is returned despite an
        error."""
        ray_jobs, found = RayJobs(self.api, self.settings), None
        try:
            found = await ray_jobs.get(job)
            if invalid is not None:
                return found, invalid
            is_lost = found is None and before.ray_job_name is not None
            if is_lost and not await self._still_exists(job):
                return None, RayJobError(DELETING, "the TrainJob was deleted, and its RayJob with it")
            job, changed = keep_config(with_storage(job, before.storage or storage_of(found), self.settings), found)
            job, requeued = hold_queue(job, found)
            if is_lost and should_create(job, before):
                message = f"RayJob {before.ray_job_name} was deleted before the job's end; it is created again"
                origin = change_origin(before, found)
                await self.recorder.record(job.metadata.model_dump(), origin, "RayJobRecreated", message, warning=True)
            return await ray_jobs.ensure(job, before, found), changed or requeued
        except RayJobError as error:
            return error.ray_job or found, error

    async def _still_exists(self, job: TrainJob) -> bool:
        """Whether the TrainJob still exists. If it was deleted since it was read, that explains a missing RayJob."""
        found = await self.api.get(TRAIN_JOBS, str(job.metadata.namespace), job.metadata.name)
        return found is not None and found["metadata"]["uid"] == job.metadata.uid

    async def _is_unchanged(self, body: Mapping[str, Any]) -> bool:
        metadata = body["metadata"]
        found = await self.api.get(TRAIN_JOBS, metadata["namespace"], metadata["name"])
        return found is not None and found["metadata"]["resourceVersion"] == metadata["resourceVersion"]

    async def _write_status(
        self, body: Mapping[str, Any], before: TrainJobStatus, status: TrainJobStatus, origin: str
    ) -> None:
        if same_operator_fields(before, status):
            return
        metadata, patch = body["metadata"], status_patch(body, status)
        # before the status: afterwards, nothing shows that the Events are due
        for reason, message, warning in events_for_change(before, status):
            await self.recorder.record(metadata, origin, reason, message, warning)
        await self.api.patch(TRAIN_JOBS, metadata["namespace"], f"{metadata['name']}/status", patch)
        logger.info("%s: %s", status.phase, status.message or status.reason, extra={"job": metadata["name"]})
        if status.phase == "Running" and before.phase != "Running" and status.attempt == 1:
            created = datetime.fromisoformat(metadata["creationTimestamp"])
            START_SECONDS.observe((self.api.now - created).total_seconds())

    async def _suspend_in_queue(self, job: TrainJob, workloads: Sequence[Mapping[str, Any]]) -> None:
        """Suspends or resumes a job in a queue by its Workload's `spec.active`, since Kueue owns the RayJob's
        `suspend`. A Workload that somebody else has deactivated stays inactive."""
        for workload in workloads:
            metadata, active = workload["metadata"], workload.get("spec", {}).get("active", True)
            if active == job.spec.suspend and (active or was_deactivated_by_operator(workload)):
                changes = {"spec": {"active": not active}}
                await self.api.merge(WORKLOADS, metadata["namespace"], metadata["name"], changes)

    async def _clean_up(self, job: TrainJob, status: TrainJobStatus) -> float | None:
        """Deletes the pods, the RayJob and the TrainJob of a finished job, each when its time has come. Returns the
        seconds until the next of these steps, or None."""
        steps = await self._stop(job, status), await self._free(job, status), await self._expire(job, status)
        return min((time for time in steps if time is not None), default=None)

    async def _stop(self, job: TrainJob, status: TrainJobStatus) -> float | None:
        """Deletes the RayJob of a finished TrainJob if KubeRay has not ended it by the total deadline or within
        KUBERAY_END_GRACE, or immediately for one of REASONS_TO_DELETE. Returns the seconds until then."""
        ray_jobs = RayJobs(self.api, self.settings)
        try:
            found = await ray_jobs.get(job)
        except RayJobError:  # another owner's
            return None
        if found is None or found.get("status", {}).get("jobDeploymentStatus") in ("Complete", "Failed"):
            return None
        late, now = add_clamped(status.completion_time or self.api.now, KUBERAY_END_GRACE), self.api.now
        left = (min(late, total_deadline(job, status.start_time) or late) - now).total_seconds()
        if left > 0 and status.reason not in REASONS_TO_DELETE:
            return left
        await ray_jobs.delete(found)
        if now >= late:
            name, origin = found["metadata"]["name"], change_origin(status, found)
            message = f"KubeRay did not end RayJob {name} after the job's end, so the operator deleted it and its pods"
            await self.recorder.record(job.metadata.model_dump(), origin, "RayJobDeleted", message, warning=True)
        return None

    async def _free(self, job: TrainJob, status: TrainJobStatus) -> float | None:
        """Deletes the RayJob after `rayJobTTLAfterFinished`. Returns the seconds until then."""
        left = self._seconds_left(job.spec.ray_job_ttl_after_finished, status)
        if left is None or left > 0:
            return left
        ray_jobs = RayJobs(self.api, self.settings)
        with suppress(RayJobError):  # another owner's
            if (found := await ray_jobs.get(job)) is not None:
                await ray_jobs.delete(found)
        return None

    async def _expire(self, job: TrainJob, status: TrainJobStatus) -> float | None:
        """Deletes the TrainJob after `ttlAfterFinished`, once no notification is pending. Returns the seconds until
        then."""
        left, metadata = self._seconds_left(job.spec.ttl_after_finished, status), job.metadata
        if left is not None and any(each.state == "Pending" for each in status.notifications):
            left = max(left, NOTIFYING_REQUEUE_SECONDS)
        if left is None or left > 0:
            return left
        await self.api.delete(TRAIN_JOBS, str(metadata.namespace), metadata.name, str(metadata.uid))
        return None

    def _seconds_left(self, ttl: str | None, status: TrainJobStatus) -> float | None:
        """Seconds until `ttl` expires for a finished job; None without a TTL."""
        if ttl is None or status.completion_time is None:
            return None
        return (add_clamped(status.completion_time, timedelta(seconds=seconds(ttl))) - self.api.now).total_seconds()


def requeue_after(job: TrainJob, status: TrainJobStatus, observed: Observed, now: datetime) -> float:
    """Seconds until an unfinished TrainJob is reconciled again even if no watched object changes."""
    times = [MAX_REQUEUE_SECONDS]
    if observed.error is not None and observed.error.reason != DELETING:
        times.append(REFUSED_REQUEUE_SECONDS)
    if any(map(is_starting, observed.pods)) or (job.spec.suspend and status.phase != "Suspended"):
        times.append(STARTING_REQUEUE_SECONDS)
    ray_job = observed.ray_job
    if ray_job is not None and event_sources(ray_job, observed.pods):  # Events are not watched either
        started = parse_time(ray_job.get("status", {}).get("startTime")) or now
        times.append(max(STARTING_REQUEUE_SECONDS, (now - started).total_seconds() / 10))
    if status.reason == "Queued":  # Workloads are not watched: poll less often the longer the job waits
        since = next(each.last_transition_time for each in status.conditions if each.type == "Suspended")
        times.append(max(STARTING_REQUEUE_SECONDS, (now - since).total_seconds() / 10))
    deadlines = (
        total_deadline(job, status.start_time),
        start_deadline(job, status.start_time, status, observed),
        failure_deadline(status.training, ray_job),
    )
    times += [(deadline - now).total_seconds() for deadline in deadlines if deadline is not None and deadline > now]
    return min(times)
