"""The RayJob of a TrainJob: found, created, and kept as the TrainJob asks for it."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from trainjob.api import TrainJob
from trainjob.api.cluster import KubernetesObject
from trainjob.api.names import UID_LABEL
from trainjob.api.trainjob_status import TrainJobStatus
from trainjob_operator.api import NETWORK_POLICIES, RAY_JOBS, Api, ApiError
from trainjob_operator.drift import first_drift, has_drifted
from trainjob_operator.errors import RayJobError
from trainjob_operator.names import ASKED_ANNOTATION, QUEUE_LABEL, RENDERED_ANNOTATION, ray_job_name
from trainjob_operator.network_policy import network_of, network_policy, policy_name
from trainjob_operator.queues import is_in_queue, keep_tolerations, queue_of
from trainjob_operator.render import asked_workers, changeable, digest, render
from trainjob_operator.settings import Settings
from trainjob_operator.verdict import RAY_JOB_DELETING, deletion_of, has_finished

_CHANGED_BY_OTHERS = "an admission policy or webhook changes what the operator writes into"

REFUSALS = (400, 403, 404, 422, 500)
"""HTTP statuses that another attempt will get again: the API server refuses the RayJob or does not know RayJobs, this
operator lacks a permission, or an admission webhook fails."""


@dataclass(frozen=True)
class RayJobs:
    """Reads and writes RayJobs."""

    api: Api
    settings: Settings

    async def get(self, job: TrainJob) -> KubernetesObject | None:
        """The job's RayJob, or None where there is none. Raises RayJobError where another owner's has its name: also a
        TrainJob's that was deleted and created again, until Kubernetes has deleted its RayJob."""
        uid = job.metadata.uid
        found = await self.api.get(RAY_JOBS, *_place(job))
        if found is not None:
            found.setdefault("spec", {})  # which anybody may remove
        if found is None or uid == found["metadata"].get("labels", {}).get(UID_LABEL):
            return found
        owners = found["metadata"].get("ownerReferences", [])
        if uid in (owner["uid"] for owner in owners):
            return found
        if any((owner["kind"], owner["name"]) == ("TrainJob", job.metadata.name) for owner in owners):
            raise RayJobError(RAY_JOB_DELETING, deletion_of(found["metadata"]))
        raise RayJobError(
            "NameTaken", f"there is a RayJob {ray_job_name(job.metadata.name)} already that is not this TrainJob's"
        )

    async def ensure(
        self, job: TrainJob, before: TrainJobStatus, found: KubernetesObject | None
    ) -> KubernetesObject | None:
        """Creates the RayJob, or takes back what others have changed of the one that was found. Returns the RayJob as
        it is then; None where there is to be none. Raises RayJobError where that is impossible."""
        if found is None and not is_wanted(job, before):
            return None
        if found is not None and "deletionTimestamp" in found["metadata"]:
            return found
        if found is not None:
            _tell_suspend(found)
        try:
            await self._isolate(job)
        except RayJobError:
            if found is not None and job.spec.suspend:
                await self._change(job, before, found)
            raise
        if found is not None:
            found = await self._move_to_queue(job, found)
        if found is not None and not self._is_rendered(job, found):
            return await self._change(job, before, found)
        try:
            return await self._render(job, before, found)
        except RayJobError:
            if found is not None:
                await self._change(job, before, found)
            raise

    async def _render(self, job: TrainJob, before: TrainJobStatus, found: KubernetesObject | None) -> KubernetesObject:
        """Writes the whole RayJob, unless it is as it should be."""
        desired, version = render(job, self.settings, before.training), None
        if found is not None and queue_of(found) is not None:
            # Kueue's to change, but server-side apply removes a field that this operator once wrote and now leaves out
            desired["spec"]["suspend"], version = found["spec"]["suspend"], found["metadata"]["resourceVersion"]
            keep_tolerations(desired, found)
        if found is None or has_drifted(found, desired):
            with _refused_as("RayJobRefused"):
                found = await self.api.apply(RAY_JOBS, *_place(job), desired, version)
            if queue_of(found) is not None:  # maybe its namespace's default queue, in which it is created suspended
                desired["spec"].pop("suspend", None)
            _refuse_if_changed(found, desired)
        return await self._change(job, before, found)

    async def _change(self, job: TrainJob, before: TrainJobStatus, found: KubernetesObject) -> KubernetesObject:
        """Has that as it should be which may be changed of any RayJob."""
        changes = changeable(job, found, before.training)
        if not has_drifted(found, changes):
            return found
        with _refused_as("RayJobRefused"):
            changed = await self.api.merge(RAY_JOBS, *_place(job), changes)
        _refuse_if_changed(changed, changes)
        return changed

    async def _move_to_queue(self, job: TrainJob, found: KubernetesObject) -> KubernetesObject:
        """Moves the RayJob to the queue that the job asks for, or out of any. Kueue refuses a write that changes the
        queue and also resumes the RayJob, so this is a write of its own."""
        if is_in_queue(job, found):
            return found
        queue = job.metadata.labels.get(QUEUE_LABEL)
        with _refused_as("RayJobRefused"):
            moved = await self.api.merge(RAY_JOBS, *_place(job), {"metadata": {"labels": {QUEUE_LABEL: queue}}})
        _tell_suspend(moved)
        return moved

    async def _isolate(self, job: TrainJob) -> None:
        """Has the job's NetworkPolicy as it was made. Raises RayJobError where that is impossible: without it there
        are to be no pods."""
        if not self.settings.network.policies:
            return
        name = str(job.metadata.namespace), policy_name(job)
        with _refused_as("NetworkPolicyRefused"):
            found = await self.api.get(NETWORK_POLICIES, *name)
            desired = network_policy(job, network_of(found) or self.settings.network)
            # what others have added to its selectors would make it hold for fewer pods
            if found is None or found["spec"] != desired["spec"] or has_drifted(found, desired):
                found = await self.api.apply(NETWORK_POLICIES, *name, desired)
        if found["spec"] != desired["spec"]:
            path = first_drift(found, desired) or "spec"
            raise RayJobError("NetworkPolicyRefused", f"{_CHANGED_BY_OTHERS} the NetworkPolicy: {path}")

    async def delete(self, ray_job: KubernetesObject) -> None:
        metadata = ray_job["metadata"]
        await self.api.delete(RAY_JOBS, metadata["namespace"], metadata["name"], metadata["uid"])

    def _is_rendered(self, job: TrainJob, ray_job: KubernetesObject) -> bool:
        """Whether all of the RayJob is to be what this operator makes of the job: one of other settings or of another
        version stays as it is until its user asks for other workers."""
        annotations = ray_job["metadata"].get("annotations", {})
        asked = annotations.get(ASKED_ANNOTATION)
        return annotations.get(RENDERED_ANNOTATION) == digest(self.settings) or asked not in (None, asked_workers(job))


def is_wanted(job: TrainJob, before: TrainJobStatus) -> bool:
    """Whether a RayJob that is not there is to be created. The queue of a suspended job would start it."""
    is_held = job.spec.suspend and QUEUE_LABEL in job.metadata.labels
    return not is_held and not has_finished(before.training)


def _place(job: TrainJob) -> tuple[str, str]:
    """Namespace and name of the RayJob."""
    return str(job.metadata.namespace), ray_job_name(job.metadata.name)


def _tell_suspend(ray_job: KubernetesObject) -> None:
    """Sets `spec.suspend` to its default where it is missing: KubeRay leaves it out when it writes its finalizer."""
    ray_job["spec"].setdefault("suspend", False)


def _refuse_if_changed(answer: KubernetesObject, desired: KubernetesObject) -> None:
    """Raises RayJobError where the API server's answer to a write is not what was to be written."""
    path = first_drift(answer, desired)
    if path is not None:
        raise RayJobError("RayJobChanged", f"{_CHANGED_BY_OTHERS} the RayJob: {path}", answer)


@contextmanager
def _refused_as(reason: str) -> Generator[None]:
    """Raises RayJobError where the API server refuses what the block asks of it."""
    try:
        yield
    except ApiError as error:
        if error.status not in REFUSALS:
            raise
        raise RayJobError(reason, str(error)) from None
