"""Makes the cluster hold what a TrainJob asks for, and the TrainJob's status tell how it is doing.

Everything is read anew each time and nothing is remembered, so a reconciliation may be interrupted anywhere and
repeated at will.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from trainjob.api import TrainJob
from trainjob.api.cluster import KubernetesObject, seconds
from trainjob.api.trainjob_status import TrainJobStatus, read_status
from trainjob_operator.api import TRAIN_JOBS, WORKLOADS, Api
from trainjob_operator.deadlines import later, start_deadline, total_deadline
from trainjob_operator.errors import RayJobError
from trainjob_operator.events import Recorder, events_of, origin_of
from trainjob_operator.head import time_of
from trainjob_operator.metrics import START_SECONDS
from trainjob_operator.names import MANAGER
from trainjob_operator.observe import observe
from trainjob_operator.queues import in_queue, queue_of, with_kept_queue
from trainjob_operator.ray_jobs import RayJobs, is_wanted
from trainjob_operator.refusals import sources_of
from trainjob_operator.render import start_seconds, storage_of, with_storage
from trainjob_operator.settings import Settings
from trainjob_operator.snapshot import keep_config
from trainjob_operator.status import FINAL, derive, is_starting, same
from trainjob_operator.train_job import read_train_job, status_patch
from trainjob_operator.verdict import DELETING, Observed

STARTING_SECONDS = 4.0
"""While pods are starting: an event, which is not watched, may tell why they do not get on."""
REFUSED_SECONDS = 15.0
LONGEST_SECONDS = 300.0
"""A watch that was broken for long does not tell what was deleted meanwhile."""

LEAVES_PODS = ("DeadlineExceeded", "PreRunningDeadlineExceeded", "ValidationFailed")
"""Reasons of a TrainJob's end after which KubeRay leaves the pods running."""

KUBERAYS_END = timedelta(minutes=5)
"""How long after a TrainJob's end KubeRay has to end its RayJob. It goes on holding the pods where it cannot create the
Service of a RayJob, for example, as it then does not ask how the job is doing."""

Key = tuple[str, str]
"""Namespace and name of a TrainJob."""

logger = logging.getLogger("trainjob.operator")


@dataclass(frozen=True)
class Reconciler:
    """Reconciles TrainJobs one at a time."""

    api: Api
    settings: Settings
    recorder: Recorder

    async def reconcile(self, key: Key) -> float | None:
        """Returns after how many seconds the TrainJob is to be reconciled again, if at all."""
        body = await self.api.get(TRAIN_JOBS, *key)
        if body is None:
            return None
        job, invalid = read_train_job(body)
        if "deletionTimestamp" in body["metadata"]:
            invalid = RayJobError(DELETING, "the TrainJob is being deleted")
        before, unreadable = read_status(body)
        if before.phase in FINAL:
            status = derive(job, body["metadata"]["generation"], before, Observed(), self.api.now)
            await self._write_status(body, before, status, origin_of(before, None))
            return await self._clean_up(job, status)
        ray_job, error = await self._ensure_ray_job(job, before, invalid)
        job = job if ray_job is None else in_queue(job, queue_of(ray_job))
        observed = await observe(self.api, job, ray_job)
        observed = replace(
            observed,
            unreadable=[*unreadable, *observed.unreadable],
            error=error,
            start_seconds=start_seconds(job, ray_job, self.settings),
        )
        status = derive(job, body["metadata"]["generation"], before, observed, self.api.now)
        if status.phase in FINAL and not await self._is_as_read(body):
            return 0.0  # training may have said how it ended after the TrainJob was read, and before the RayJob was
        await self._write_status(body, before, status, origin_of(before, ray_job))
        if status.phase in FINAL:
            return await self._clean_up(job, status)
        await self._suspend_in_queue(job, observed.workloads)
        return requeue_after(job, status, observed, self.api.now)

    async def _ensure_ray_job(
        self, job: TrainJob, before: TrainJobStatus, invalid: RayJobError | None
    ) -> tuple[KubernetesObject | None, RayJobError | None]:
        """The RayJob as it is now, and why it is not what the TrainJob asks for, if it is not: an error does not hide a
        RayJob that exists."""
        ray_jobs, found = RayJobs(self.api, self.settings), None
        try:
            found = await ray_jobs.get(job)
            if invalid is not None:
                return found, invalid
            is_lost = found is None and before.ray_job_name is not None
            if is_lost and not await self._is_there(job):
                return None, RayJobError(DELETING, "the TrainJob was deleted, and its RayJob with it")
            job, changed = keep_config(with_storage(job, before.storage or storage_of(found), self.settings), found)
            job, requeued = with_kept_queue(job, found)
            if is_lost and is_wanted(job, before):
                message = f"RayJob {before.ray_job_name} was deleted before the job's end; it is created again"
                origin = origin_of(before, found)
                await self.recorder.record(job.metadata.model_dump(), origin, "RayJobRecreated", message, warning=True)
            return await ray_jobs.ensure(job, before, found), changed or requeued
        except RayJobError as error:
            return error.ray_job or found, error

    async def _is_there(self, job: TrainJob) -> bool:
        """Whether the TrainJob was not deleted since it was read: its RayJob would go, too, and be missed."""
        found = await self.api.get(TRAIN_JOBS, str(job.metadata.namespace), job.metadata.name)
        return found is not None and found["metadata"]["uid"] == job.metadata.uid

    async def _is_as_read(self, body: Mapping[str, Any]) -> bool:
        metadata = body["metadata"]
        found = await self.api.get(TRAIN_JOBS, metadata["namespace"], metadata["name"])
        return found is not None and found["metadata"]["resourceVersion"] == metadata["resourceVersion"]

    async def _write_status(
        self, body: Mapping[str, Any], before: TrainJobStatus, status: TrainJobStatus, origin: str
    ) -> None:
        if same(before, status):
            return
        metadata, patch = body["metadata"], status_patch(body, status)
        for reason, message, warning in events_of(before, status):  # first: afterwards nothing tells that they are due
            await self.recorder.record(metadata, origin, reason, message, warning)
        await self.api.patch(TRAIN_JOBS, metadata["namespace"], f"{metadata['name']}/status", patch)
        logger.info("%s: %s", status.phase, status.message or status.reason, extra={"job": metadata["name"]})
        if status.phase == "Running" and before.phase != "Running" and status.attempt == 1:
            created = datetime.fromisoformat(metadata["creationTimestamp"])
            START_SECONDS.observe((self.api.now - created).total_seconds())

    async def _suspend_in_queue(self, job: TrainJob, workloads: Sequence[Mapping[str, Any]]) -> None:
        """In a queue it is Kueue that suspends and resumes the RayJob: its Workload says whether it may run at all.
        What others have deactivated stays so."""
        for workload in workloads:
            metadata, active = workload["metadata"], workload.get("spec", {}).get("active", True)
            if active == job.spec.suspend and (active or _has_deactivated(workload)):
                changes = {"spec": {"active": not active}}
                await self.api.merge(WORKLOADS, metadata["namespace"], metadata["name"], changes)

    async def _clean_up(self, job: TrainJob, status: TrainJobStatus) -> float | None:
        """Deletes what a job that has ended leaves running, and once their time is over its RayJob and the TrainJob."""
        steps = await self._stop(job, status), await self._free(job, status), await self._expire(job, status)
        return min((time for time in steps if time is not None), default=None)

    async def _stop(self, job: TrainJob, status: TrainJobStatus) -> float | None:
        """Deletes a RayJob that KubeRay has not ended though the TrainJob has ended: past the total deadline or
        KUBERAYS_END, or at once where KubeRay leaves the pods running. Returns after how many seconds that is."""
        ray_jobs = RayJobs(self.api, self.settings)
        try:
            found = await ray_jobs.get(job)
        except RayJobError:  # another owner's
            return None
        if found is None or found.get("status", {}).get("jobDeploymentStatus") in ("Complete", "Failed"):
            return None
        late, now = later(status.completion_time or self.api.now, KUBERAYS_END), self.api.now
        left = (min(late, total_deadline(job, status.start_time) or late) - now).total_seconds()
        if left > 0 and status.reason not in LEAVES_PODS:
            return left
        await ray_jobs.delete(found)
        if now >= late:
            name, origin = found["metadata"]["name"], origin_of(status, found)
            message = f"KubeRay has not ended RayJob {name} since the job's end; it is deleted, and its pods with it"
            await self.recorder.record(job.metadata.model_dump(), origin, "RayJobDeleted", message, warning=True)
        return None

    async def _free(self, job: TrainJob, status: TrainJobStatus) -> float | None:
        """Deletes the RayJob once its time has come. Returns after how many seconds that is."""
        left = self._left(job.spec.ray_job_ttl_after_finished, status)
        if left is None or left > 0:
            return left
        ray_jobs = RayJobs(self.api, self.settings)
        with suppress(RayJobError):  # another owner's
            if (found := await ray_jobs.get(job)) is not None:
                await ray_jobs.delete(found)
        return None

    async def _expire(self, job: TrainJob, status: TrainJobStatus) -> float | None:
        """Deletes the TrainJob once its time has come. Returns after how many seconds that is."""
        left, metadata = self._left(job.spec.ttl_after_finished, status), job.metadata
        if left is None or left > 0:
            return left
        await self.api.delete(TRAIN_JOBS, str(metadata.namespace), metadata.name, str(metadata.uid))
        return None

    def _left(self, ttl: str | None, status: TrainJobStatus) -> float | None:
        """Seconds until `ttl` is over for a job that has ended, if it has one."""
        if ttl is None or status.completion_time is None:
            return None
        return (later(status.completion_time, timedelta(seconds=seconds(ttl))) - self.api.now).total_seconds()


def requeue_after(job: TrainJob, status: TrainJobStatus, observed: Observed, now: datetime) -> float:
    """Seconds until a TrainJob that has not ended is to be reconciled again, though nothing that is watched has
    changed."""
    times = [LONGEST_SECONDS]
    if observed.error is not None and observed.error.reason != DELETING:
        times.append(REFUSED_SECONDS)
    if any(map(is_starting, observed.pods)) or (job.spec.suspend and status.phase != "Suspended"):
        times.append(STARTING_SECONDS)
    ray_job = observed.ray_job
    if ray_job is not None and sources_of(ray_job, observed.pods):  # as Events are not watched either
        begun = time_of(ray_job.get("status", {}).get("startTime")) or now
        times.append(max(STARTING_SECONDS, (now - begun).total_seconds() / 10))
    if status.reason == "Queued":  # Workloads are not watched: the longer one waits, the less often it is asked
        since = next(each.last_transition_time for each in status.conditions if each.type == "Suspended")
        times.append(max(STARTING_SECONDS, (now - since).total_seconds() / 10))
    deadlines = total_deadline(job, status.start_time), start_deadline(job, status.start_time, status, observed)
    times += [(deadline - now).total_seconds() for deadline in deadlines if deadline is not None and deadline > now]
    return min(times)


def _has_deactivated(workload: Mapping[str, Any]) -> bool:
    """Whether it is this operator that wrote last whether a Workload is active."""
    fields = (each for each in workload["metadata"].get("managedFields", []) if each["manager"] == MANAGER)
    return any("f:active" in each.get("fieldsV1", {}).get("f:spec", {}) for each in fields)
