"""Makes the cluster hold what a TrainJob asks for, and the TrainJob's status tell how it is doing.

All is read anew each time and nothing is remembered, so it can be interrupted anywhere and repeated at will.
"""

import logging
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from pydantic import ValidationError

from trainjob.api import TrainJob
from trainjob.api.cluster import KubernetesObject, seconds
from trainjob.api.trainjob_status import TrainJobStatus
from trainjob_operator.api import EVENTS, PODS, RAY_JOBS, TRAIN_JOBS, WORKLOADS, Api, ApiError
from trainjob_operator.difference import contains
from trainjob_operator.events import Recorder, news
from trainjob_operator.metrics import START_SECONDS
from trainjob_operator.names import MANAGER, QUEUE_LABEL, RENDERED_ANNOTATION, UID_LABEL, ray_job_name
from trainjob_operator.render import MUTABLE, Unrenderable, render
from trainjob_operator.settings import Settings
from trainjob_operator.status import FINAL, Observed, derive, reject, same

LOOK_AGAIN_SECONDS = 4.0
"""While pods are on their way: an event may tell why they are not getting on."""
REFUSED_SECONDS = 15.0
AT_THE_LATEST_SECONDS = 300.0
"""A watch that was broken for long does not tell what was deleted meanwhile."""

Key = tuple[str, str]
"""Namespace and name of a TrainJob."""
Result = TypeVar("Result")

logger = logging.getLogger("trainjob.operator")


@dataclass
class Reconciler:
    """Reconciles TrainJobs one at a time."""

    api: Api
    settings: Settings
    recorder: Recorder
    new: dict[Key, KubernetesObject]
    """TrainJobs that had no status when they were last seen: these need not be read again."""

    async def reconcile(self, key: Key) -> float | None:
        """Returns after how many seconds the TrainJob wants to be looked at again."""
        namespace, name = key
        body = self.new.pop(key, None)
        if body is None or not self.api.knows_time:
            body = await self.api.get(TRAIN_JOBS, namespace, name)
        if body is None or "deletionTimestamp" in body["metadata"]:
            return None
        before = TrainJobStatus.model_validate(body.get("status", {}), extra="ignore")
        now, generation = self.api.now, body["metadata"]["generation"]
        try:
            job = _parse(body)
        except Unrenderable as error:
            await self._write_status(body, before, reject(before, error, generation, now))
            return None
        if before.phase in FINAL:
            return await self._after_the_end(job, before, now)
        observed = await self._observe(job, before)
        status = derive(job, generation, before, observed, now)
        await self._write_status(body, before, status)
        if status.phase in FINAL:
            return await self._after_the_end(job, status, now)
        return _look_again(job, status, observed, now)

    async def _observe(self, job: TrainJob, before: TrainJobStatus) -> Observed:
        """What the cluster holds of the job, with its RayJob as it should be."""
        try:
            ray_job = await self._ensure_ray_job(job, before)
        except Unrenderable as error:
            return Observed(refused=error)
        if ray_job is None:
            return Observed()
        namespace = ray_job["metadata"]["namespace"]
        pods: list[KubernetesObject] = []
        if ray_job.get("status", {}).get("rayClusterName"):
            pods = await self.api.list(PODS, namespace, labelSelector=f"{UID_LABEL}={job.metadata.uid}")
        events = [event for pod in pods if _is_on_its_way(pod) for event in await self._events(namespace, pod)]
        workloads: list[KubernetesObject] = []
        if QUEUE_LABEL in job.metadata.labels and (job.spec.suspend or ray_job["spec"].get("suspend")):
            workloads = await self._workloads(ray_job)
            await self._tell_queue(job, workloads)
        return Observed(ray_job, pods, events, None, workloads)

    async def _ensure_ray_job(self, job: TrainJob, before: TrainJobStatus) -> KubernetesObject | None:
        """The RayJob, as it should be; a queue sees none before the TrainJob is to run, as it would start it."""
        namespace, name = str(job.metadata.namespace), ray_job_name(job.metadata.name)
        desired = render(job, self.settings, before.training)
        is_held = job.spec.suspend and QUEUE_LABEL in job.metadata.labels
        if before.phase is None and not is_held:  # as a rule there is none yet
            made = await self._accepted(self.api.make(RAY_JOBS, namespace, desired))
            if made is not None:
                return made
        found = await self.api.get(RAY_JOBS, namespace, name)
        if found is None and is_held:
            return None
        if found is None:
            if before.ray_job_name is not None:
                message = f"RayJob {name} is gone before the job's end; making it again"
                self.recorder.record(job.metadata.model_dump(), "RayJobRecreated", message, warning=True)
            return await self._accepted(self.api.apply(RAY_JOBS, namespace, name, desired))
        if found["metadata"].get("labels", {}).get(UID_LABEL) != job.metadata.uid:
            raise Unrenderable("NameTaken", f"there is a RayJob {name} already that is not this TrainJob's")
        if "deletionTimestamp" in found["metadata"]:
            return found
        found["spec"].setdefault("suspend", False)  # KubeRay leaves that out when it writes its finalizer
        annotations = found["metadata"].get("annotations", {})
        if annotations.get(RENDERED_ANNOTATION) != desired["metadata"]["annotations"][RENDERED_ANNOTATION]:
            changes = {field: desired["spec"].get(field) for field in MUTABLE if field in desired["spec"]}
            if contains(found["spec"], changes):
                return found
            return await self._accepted(self.api.merge(RAY_JOBS, namespace, name, {"spec": changes}))
        if contains(found, desired):
            return found
        if patch := _adoption(found["metadata"]):
            await self.api.patch(RAY_JOBS, namespace, name, patch)
        return await self._accepted(self.api.apply(RAY_JOBS, namespace, name, desired))

    async def _accepted(self, request: Awaitable[Result]) -> Result:
        """The answer to a request; what the API server refuses for good tells the user why."""
        try:
            return await request
        except ApiError as error:
            if error.status in (400, 403, 422):
                raise Unrenderable("RayJobRefused", str(error)) from None
            raise

    async def _events(self, namespace: str, pod: Mapping[str, Any]) -> list[KubernetesObject]:
        return await self.api.list(EVENTS, namespace, fieldSelector=f"involvedObject.name={pod['metadata']['name']}")

    async def _workloads(self, ray_job: Mapping[str, Any]) -> list[KubernetesObject]:
        metadata = ray_job["metadata"]
        selector = f"kueue.x-k8s.io/job-uid={metadata['uid']}"
        try:
            return await self.api.list(WORKLOADS, metadata["namespace"], labelSelector=selector)
        except ApiError as error:
            if error.status in (403, 404):  # Kueue is not here, or of another version
                return []
            raise

    async def _tell_queue(self, job: TrainJob, workloads: list[KubernetesObject]) -> None:
        """In a queue it is Kueue that suspends and resumes the RayJob: its Workload says whether it may run at all.
        What others have deactivated stays so."""
        for workload in workloads:
            metadata, active = workload["metadata"], workload["spec"].get("active", True)
            if active == job.spec.suspend and (active or _has_deactivated(workload)):
                changes = {"spec": {"active": not active}}
                await self.api.merge(WORKLOADS, metadata["namespace"], metadata["name"], changes)

    async def _write_status(self, body: Mapping[str, Any], before: TrainJobStatus, status: TrainJobStatus) -> None:
        if same(before, status):
            return
        metadata = body["metadata"]
        patch = _status_patch(body, status)
        await self.api.patch(TRAIN_JOBS, metadata["namespace"], f"{metadata['name']}/status", patch)
        logger.info("%s: %s", status.phase, status.message or status.reason, extra={"job": metadata["name"]})
        if status.phase == "Running" and before.phase != "Running" and status.attempt == 1:
            created = datetime.fromisoformat(metadata["creationTimestamp"])
            START_SECONDS.observe((self.api.now - created).total_seconds())
        for reason, message, warning in news(before, status):
            self.recorder.record(metadata, reason, message, warning)

    async def _after_the_end(self, job: TrainJob, status: TrainJobStatus, now: datetime) -> float | None:
        """Stops what still runs past the deadline, and deletes the TrainJob when its time has come."""
        namespace = str(job.metadata.namespace)
        if status.reason == "DeadlineExceeded" and status.ray_job_name is not None:
            found = await self.api.get(RAY_JOBS, namespace, status.ray_job_name)
            if found is not None and found["metadata"].get("labels", {}).get(UID_LABEL) == job.metadata.uid:
                await self.api.delete(RAY_JOBS, namespace, status.ray_job_name, found["metadata"]["uid"])
        ttl = job.spec.ttl_after_finished
        if ttl is None or status.completion_time is None:
            return None
        left = (status.completion_time + timedelta(seconds=seconds(ttl)) - now).total_seconds()
        if left > 0:
            return left
        await self.api.delete(TRAIN_JOBS, namespace, job.metadata.name, str(job.metadata.uid))
        return None


def _parse(body: Mapping[str, Any]) -> TrainJob:
    """Raises Unrenderable where the spec is of another version of the TrainJob's definition."""
    try:
        return TrainJob.model_validate({**body, "status": None}, by_alias=True, by_name=False)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, part['loc']))}: {part['msg']}" for part in error.errors())
        raise Unrenderable("InvalidSpec", problems) from None


def _adoption(metadata: Mapping[str, Any]) -> list[KubernetesObject]:
    """JSON Patch that makes the fields with which the operator has created an object count as applied; otherwise, those
    that are no longer wanted would remain."""
    own = [
        (each["operation"], f"/metadata/managedFields/{index}/operation")
        for index, each in enumerate(metadata.get("managedFields", []))
        if each["manager"] == MANAGER and "subresource" not in each
    ]
    if [operation for operation, _ in own] != ["Update"]:
        return []
    version = {"op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]}
    return [version, *({"op": "replace", "path": path, "value": "Apply"} for _, path in own)]


def _has_deactivated(workload: Mapping[str, Any]) -> bool:
    """Whether it is this operator that wrote last whether a Workload is active."""
    fields = (each for each in workload["metadata"].get("managedFields", []) if each["manager"] == MANAGER)
    return any("f:active" in each.get("fieldsV1", {}).get("f:spec", {}) for each in fields)


def _status_patch(body: Mapping[str, Any], status: TrainJobStatus) -> list[KubernetesObject]:
    """JSON Patch that makes all of a TrainJob's status but `training` this one, unless another TrainJob has the name by
    now; server-side apply would write all the same, as it ignores a UID there."""
    found: Mapping[str, Any] | None = body.get("status")
    own = status.model_dump(mode="json", by_alias=True, exclude={"training"}, exclude_none=True)
    patch: list[KubernetesObject] = [{"op": "test", "path": "/metadata/uid", "value": body["metadata"]["uid"]}]
    if found is None:
        patch.append({"op": "test", "path": "/status", "value": None})
        return [*patch, {"op": "add", "path": "/status", "value": own}]
    gone = found.keys() - own.keys() - {"training"}
    patch += [{"op": "add", "path": f"/status/{name}", "value": value} for name, value in own.items()]
    return patch + [{"op": "remove", "path": f"/status/{name}"} for name in gone]


def _is_on_its_way(pod: Mapping[str, Any]) -> bool:
    """Whether a pod is bound to a node but not running: only its events tell what it waits for."""
    status = pod.get("status", {})
    return status.get("phase") == "Pending" and bool(pod["spec"].get("nodeName"))


def _look_again(job: TrainJob, status: TrainJobStatus, observed: Observed, now: datetime) -> float:
    times = [AT_THE_LATEST_SECONDS]
    if observed.refused is not None:
        times.append(REFUSED_SECONDS)
    if any(_is_on_its_way(pod) for pod in observed.pods) or (job.spec.suspend and status.phase != "Suspended"):
        times.append(LOOK_AGAIN_SECONDS)
    if status.reason == "Queued":  # Workloads are not watched: the longer one waits, the less often it is asked
        since = next(each.last_transition_time for each in status.conditions if each.type == "Suspended")
        times.append(max(LOOK_AGAIN_SECONDS, (now - since).total_seconds() / 10))
    if job.spec.deadlines.total is not None and status.start_time is not None:
        end = status.start_time + timedelta(seconds=seconds(job.spec.deadlines.total))
        times.append(max(0.05, (end - now).total_seconds()))
    return min(times)
