"""Creates the RayJob of a TrainJob and keeps it up to date."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from trainjob.api import TrainJob
from trainjob.api.cluster import KubernetesObject
from trainjob.api.names import UID_LABEL
from trainjob.api.resources import RAY_JOBS
from trainjob.api.trainjob_status import TrainJobStatus
from trainjob_operator.api import NETWORK_POLICIES, Api, ApiError
from trainjob_operator.drift import first_drift, has_drifted
from trainjob_operator.errors import RayJobError
from trainjob_operator.names import DIGEST_ANNOTATION, QUEUE_LABEL, REQUESTED_WORKERS_ANNOTATION, ray_job_name
from trainjob_operator.network_policy import network_policy, policy_name, recorded_network
from trainjob_operator.queues import is_in_queue, keep_tolerations, queue_of
from trainjob_operator.render import digest, mutable_fields, render, requested_workers
from trainjob_operator.settings import Settings
from trainjob_operator.verdict import RAY_JOB_DELETING, deletion_message, has_finished

_CHANGED_BY_OTHERS = "an admission policy or webhook changes what the operator writes into"

PERMANENT_STATUSES = (400, 403, 404, 422, 500)
"""HTTP statuses that a retry would get again: the API server rejects the RayJob or does not serve RayJobs, the operator
lacks a permission, or an admission webhook fails."""


@dataclass(frozen=True)
class RayJobs:
    """Reads and writes RayJobs."""

    api: Api
    settings: Settings

    async def get(self, job: TrainJob) -> KubernetesObject | None:
        """The job's RayJob, or None. Raises RayJobError if a RayJob of another owner has the name, for example that of
        a deleted TrainJob of the same name until Kubernetes has deleted it."""
        uid = job.metadata.uid
        found = await self.api.get(RAY_JOBS, *_namespaced_name(job))
        if found is not None:
            found.setdefault("spec", {})  # users may have removed it
        if found is None or uid == found["metadata"].get("labels", {}).get(UID_LABEL):
            return found
        owners = found["metadata"].get("ownerReferences", [])
        if uid in (owner["uid"] for owner in owners):
            return found
        if any((owner["kind"], owner["name"]) == ("TrainJob", job.metadata.name) for owner in owners):
            raise RayJobError(RAY_JOB_DELETING, deletion_message(found["metadata"]))
        raise RayJobError(
            "NameTaken",
            f"the RayJob {ray_job_name(job.metadata.name)} exists already and does not belong to this TrainJob",
        )

    async def ensure(
        self, job: TrainJob, before: TrainJobStatus, found: KubernetesObject | None
    ) -> KubernetesObject | None:
        """Creates the RayJob, or reverts foreign changes of the one that was found. Returns the resulting RayJob; None
        if there should be none. Raises RayJobError if the API server refuses it."""
        if found is not None:
            return found if "deletionTimestamp" in found["metadata"] else await self._update(job, before, found)
        if not should_create(job, before):
            return None
        await self._ensure_network_policy(job)
        return await self._apply(job, before, None)

    async def _update(self, job: TrainJob, before: TrainJobStatus, found: KubernetesObject) -> KubernetesObject:
        """Reverts foreign changes. If the API server refuses that, patches at least the fields that may change on any
        RayJob; if it refuses the NetworkPolicy, only when the job should be suspended."""
        _fill_in_suspend(found)
        try:
            await self._ensure_network_policy(job)
        except RayJobError:
            if job.spec.suspend:
                await self._patch(job, before, found)
            raise
        found = await self._move_to_queue(job, found)
        if not self._keeps_in_sync(job, found):
            return await self._patch(job, before, found)
        try:
            return await self._apply(job, before, found)
        except RayJobError:
            await self._patch(job, before, found)
            raise

    async def _apply(self, job: TrainJob, before: TrainJobStatus, found: KubernetesObject | None) -> KubernetesObject:
        """Applies the whole RayJob if there is none or if it has drifted."""
        desired, version = render(job, self.settings, before.training), None
        if found is not None and queue_of(found) is not None:
            # Kueue owns it now, but server-side apply removes a field that the operator has set before and omits now
            desired["spec"]["suspend"], version = found["spec"]["suspend"], found["metadata"]["resourceVersion"]
            keep_tolerations(desired, found)
        if found is None or has_drifted(found, desired):
            with _refusals_as("RayJobRefused"):
                found = await self.api.apply(RAY_JOBS, *_namespaced_name(job), desired, version)
            if queue_of(found) is not None:  # possibly the namespace's default queue, which creates it suspended
                desired["spec"].pop("suspend", None)
            _refuse_if_changed(found, desired)
        return await self._patch(job, before, found)

    async def _patch(self, job: TrainJob, before: TrainJobStatus, found: KubernetesObject) -> KubernetesObject:
        """Patches the fields that may change on any RayJob if they have drifted."""
        changes = mutable_fields(job, found, before.training)
        if not has_drifted(found, changes):
            return found
        with _refusals_as("RayJobRefused"):
            changed = await self.api.merge(RAY_JOBS, *_namespaced_name(job), changes)
        _refuse_if_changed(changed, changes)
        return changed

    async def _move_to_queue(self, job: TrainJob, found: KubernetesObject) -> KubernetesObject:
        """Moves the RayJob to the queue that the job asks for, or out of any. Kueue refuses a write that changes the
        queue and also resumes the RayJob, so this is a write of its own."""
        if is_in_queue(job, found):
            return found
        changes = {"metadata": {"labels": {QUEUE_LABEL: job.metadata.labels.get(QUEUE_LABEL)}}}
        with _refusals_as("RayJobRefused"):
            moved = await self.api.merge(RAY_JOBS, *_namespaced_name(job), changes)
        _fill_in_suspend(moved)
        return moved

    async def _ensure_network_policy(self, job: TrainJob) -> None:
        """Creates the job's NetworkPolicy or reverts changes to it. Raises RayJobError if the API server refuses it: no
        pods may run without it."""
        if not self.settings.network.policies:
            return
        name = str(job.metadata.namespace), policy_name(job)
        with _refusals_as("NetworkPolicyRefused"):
            found = await self.api.get(NETWORK_POLICIES, *name)
            desired = network_policy(job, recorded_network(found) or self.settings.network)
            # additions to its selectors would make it apply to fewer pods
            if found is None or found["spec"] != desired["spec"] or has_drifted(found, desired):
                found = await self.api.apply(NETWORK_POLICIES, *name, desired)
        if found["spec"] != desired["spec"]:
            path = first_drift(found, desired) or "spec"
            raise RayJobError("NetworkPolicyRefused", f"{_CHANGED_BY_OTHERS} the NetworkPolicy: {path}")

    async def delete(self, ray_job: KubernetesObject) -> None:
        metadata = ray_job["metadata"]
        await self.api.delete(RAY_JOBS, metadata["namespace"], metadata["name"], metadata["uid"])

    def _keeps_in_sync(self, job: TrainJob, ray_job: KubernetesObject) -> bool:
        """Whether to keep the whole RayJob in sync. One that was rendered with other settings or by another version
        stays as it is until the user changes `spec.workers`."""
        annotations = ray_job["metadata"].get("annotations", {})
        workers = annotations.get(REQUESTED_WORKERS_ANNOTATION)
        has_new_workers = workers not in (None, requested_workers(job))
        current = digest(self.settings)
        return has_new_workers or annotations.get(DIGEST_ANNOTATION, current) == current  # users may have removed it


def should_create(job: TrainJob, before: TrainJobStatus) -> bool:
    """Whether to create a missing RayJob. The RayJob of a suspended job in a queue would be started by Kueue."""
    is_held = job.spec.suspend and QUEUE_LABEL in job.metadata.labels
    return not is_held and not job.spec.cancel and not has_finished(before.training)


def _namespaced_name(job: TrainJob) -> tuple[str, str]:
    """Namespace and name of the RayJob."""
    return str(job.metadata.namespace), ray_job_name(job.metadata.name)


def _fill_in_suspend(ray_job: KubernetesObject) -> None:
    """Sets a missing `spec.suspend` to its default: KubeRay omits it when it writes its finalizer."""
    ray_job["spec"].setdefault("suspend", False)


def _refuse_if_changed(answer: KubernetesObject, desired: KubernetesObject) -> None:
    """Raises RayJobError if the API server's response differs from the RayJob that was written."""
    path = first_drift(answer, desired)
    if path is not None:
        raise RayJobError("RayJobChanged", f"{_CHANGED_BY_OTHERS} the RayJob: {path}", answer)


@contextmanager
def _refusals_as(reason: str) -> Generator[None]:
    """Turns a permanent refusal by the API server into a RayJobError with this reason."""
    try:
        yield
    except ApiError as error:
        if error.status not in PERMANENT_STATUSES:
            raise
        raise RayJobError(reason, str(error)) from None
