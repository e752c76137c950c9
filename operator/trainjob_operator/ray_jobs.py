"""The RayJob of a TrainJob: found, created, and kept as the TrainJob asks for it."""

from dataclasses import dataclass

from trainjob.api import TrainJob
from trainjob.api.cluster import KubernetesObject
from trainjob.api.trainjob_status import TrainJobStatus
from trainjob_operator.api import NETWORK_POLICIES, RAY_JOBS, Api, ApiError
from trainjob_operator.drift import has_drifted
from trainjob_operator.errors import RayJobError
from trainjob_operator.names import QUEUE_LABEL, RENDERED_ANNOTATION, UID_LABEL, ray_job_name
from trainjob_operator.network_policy import network_policy, policy_name
from trainjob_operator.render import changeable, digest, render
from trainjob_operator.settings import Settings
from trainjob_operator.verdict import has_finished

REFUSALS = (400, 403, 404, 422, 500)
"""HTTP statuses that another attempt will get again: the API server refuses the RayJob or does not know RayJobs, this
operator lacks a permission, or an admission webhook fails."""


@dataclass(frozen=True)
class RayJobs:
    """Reads and writes RayJobs."""

    api: Api
    settings: Settings

    async def get(self, job: TrainJob) -> KubernetesObject | None:
        """The job's RayJob, or None where there is none. Raises RayJobError where another owner's has its name."""
        name, uid = ray_job_name(job.metadata.name), job.metadata.uid
        found = await self.api.get(RAY_JOBS, str(job.metadata.namespace), name)
        if found is None or uid == found["metadata"].get("labels", {}).get(UID_LABEL):
            return found
        if uid in (owner["uid"] for owner in found["metadata"].get("ownerReferences", [])):
            return found
        raise RayJobError("NameTaken", f"there is a RayJob {name} already that is not this TrainJob's")

    async def ensure(
        self, job: TrainJob, before: TrainJobStatus, found: KubernetesObject | None
    ) -> KubernetesObject | None:
        """Creates the RayJob, or takes back what others have changed of the one that was found. Returns the RayJob as
        it is then; None where there is to be none. Raises RayJobError where that is impossible."""
        if found is None and not is_wanted(job, before):
            return None
        if found is not None and "deletionTimestamp" in found["metadata"]:
            return found
        await self._isolate(job)
        name = str(job.metadata.namespace), ray_job_name(job.metadata.name)
        if found is not None:
            found["spec"].setdefault("suspend", False)  # KubeRay leaves that out when it writes its finalizer
        try:
            if found is not None and self._has_other_settings(found):
                changes = changeable(job, self.settings, before.training)
                return await self.api.merge(RAY_JOBS, *name, changes) if has_drifted(found, changes) else found
            desired = render(job, self.settings, before.training)
            return await self.api.apply(RAY_JOBS, *name, desired) if has_drifted(found, desired) else found
        except ApiError as error:
            if error.status not in REFUSALS:
                raise
            raise RayJobError("RayJobRefused", str(error)) from None

    async def _isolate(self, job: TrainJob) -> None:
        """Has the job's NetworkPolicy as it should be. Raises RayJobError where that is impossible: without it there
        are to be no pods."""
        if not self.settings.network.policies:
            return
        name = str(job.metadata.namespace), policy_name(job)
        desired = network_policy(job, self.settings.network)
        try:
            found = await self.api.get(NETWORK_POLICIES, *name)
            # what others have added to its selectors would make it hold for fewer pods
            if found is None or found["spec"] != desired["spec"] or has_drifted(found, desired):
                await self.api.apply(NETWORK_POLICIES, *name, desired)
        except ApiError as error:
            if error.status not in REFUSALS:
                raise
            raise RayJobError("NetworkPolicyRefused", str(error)) from None

    async def delete(self, ray_job: KubernetesObject) -> None:
        metadata = ray_job["metadata"]
        await self.api.delete(RAY_JOBS, metadata["namespace"], metadata["name"], metadata["uid"])

    def _has_other_settings(self, ray_job: KubernetesObject) -> bool:
        """Whether a RayJob was created with other settings or by another version of the operator."""
        return ray_job["metadata"].get("annotations", {}).get(RENDERED_ANNOTATION) != digest(self.settings)


def is_wanted(job: TrainJob, before: TrainJobStatus) -> bool:
    """Whether a RayJob that is not there is to be created. The queue of a suspended job would start it."""
    is_held = job.spec.suspend and QUEUE_LABEL in job.metadata.labels
    return not is_held and not has_finished(before.training)
