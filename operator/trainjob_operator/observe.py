"""Reads the objects of a TrainJob from the cluster. Nothing here writes."""

from collections.abc import Generator, Sequence, Set
from contextlib import contextmanager

from trainjob.api import TrainJob
from trainjob.api.cluster import KubernetesObject
from trainjob.api.names import UID_LABEL
from trainjob.api.resources import EVENTS, PODS, Resource
from trainjob_operator.api import WORKLOADS, Api, ApiError
from trainjob_operator.names import QUEUE_LABEL
from trainjob_operator.refusals import EventSource, event_source, event_sources
from trainjob_operator.status import is_starting
from trainjob_operator.verdict import Observed

WARNINGS = "type=Warning,involvedObject.kind!=TrainJob,reason!=BackOff,reason!=FailedScheduling,reason!=Unhealthy"
"""Selects the Events of all objects in the namespace, in one request however many objects wait. The excluded reasons
only repeat pods' statuses."""
PAGE_OF_EVENTS = 500
PAGE_OF_PODS = 50
"""Small, as a pod may take a few hundred kilobytes."""


async def observe(api: Api, job: TrainJob, ray_job: KubernetesObject | None) -> Observed:
    """The RayJob's pods, Events about objects that are being created, and Kueue's Workloads. Objects that the API
    server refuses to list count as absent."""
    if ray_job is None:
        return Observed()
    reader = _Reader(api, str(job.metadata.namespace))
    pods: Sequence[KubernetesObject] = []
    if ray_job.get("status", {}).get("rayClusterName") or ray_job["spec"].get("suspend"):
        pods = await reader.pods(f"{UID_LABEL}={job.metadata.uid}")
    events: Sequence[KubernetesObject] = []
    sources = event_sources(ray_job, pods)
    if sources or any(map(is_starting, pods)):
        events = await reader.events({("Pod", pod["metadata"]["name"]) for pod in pods} | sources.keys())
    workloads: list[KubernetesObject] = []
    if QUEUE_LABEL in job.metadata.labels and (job.spec.suspend or ray_job["spec"].get("suspend")):
        workloads = await reader.list(WORKLOADS, labelSelector=f"kueue.x-k8s.io/job-uid={ray_job['metadata']['uid']}")
    return Observed(ray_job, pods, events, workloads, tuple(dict.fromkeys(reader.failures)))


class _Reader:
    """Lists objects of a namespace and collects the API server's refusals."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api, self._namespace = api, namespace
        self.failures: list[str] = []

    async def list(self, resource: Resource, **selectors: str) -> list[KubernetesObject]:
        with self._recording_failures(resource):
            return await self._api.list(resource, self._namespace, **selectors)
        return []

    async def events(self, sources: Set[EventSource]) -> Sequence[KubernetesObject]:
        """Warnings about these objects, filtered page by page, as a namespace may have any number of Events."""
        with self._recording_failures(EVENTS):
            pages = self._api.pages(EVENTS, self._namespace, PAGE_OF_EVENTS, fieldSelector=WARNINGS)
            return [event async for events in pages for event in events if event_source(event) in sources]
        return []

    async def pods(self, selector: str) -> Sequence[KubernetesObject]:
        """The pods, each without most of its spec."""
        with self._recording_failures(PODS):
            pages = self._api.pages(PODS, self._namespace, PAGE_OF_PODS, labelSelector=selector)
            return [_without_pod_spec(pod) async for pods in pages for pod in pods]
        return []

    @contextmanager
    def _recording_failures(self, resource: Resource) -> Generator[None]:
        try:
            yield
        except ApiError as error:
            if error.status not in (403, 404, 500):
                raise
            root, plural = resource
            missing = f"the API server does not serve {root.removeprefix('/apis/')}"
            self.failures.append(f"{plural} cannot be read: {missing if error.status == 404 else error}")


def _without_pod_spec(pod: KubernetesObject) -> KubernetesObject:
    """The pod with only `nodeName` in its spec: a job may have hundreds of pods of hundreds of kilobytes."""
    return pod | {"spec": {"nodeName": pod["spec"].get("nodeName")}}
