"""Renders the RayJob of a TrainJob: a pure function of the TrainJob and the operator's settings."""

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import version
from math import ceil
from typing import Any

from pydantic import ValidationError

from trainjob.api import TrainJob
from trainjob.api.cluster import WORKER_RESOURCE, KubernetesObject, seconds
from trainjob.api.names import UID_LABEL
from trainjob.api.storage import Storage
from trainjob.api.training_status import TrainingStatus
from trainjob_operator.errors import RayJobError
from trainjob_operator.names import (
    CONTENT_ANNOTATION,
    DEFAULT_START_ANNOTATION,
    DIGEST_ANNOTATION,
    MANAGER,
    NAME_ANNOTATION,
    QUEUE_LABEL,
    REQUESTED_WORKERS_ANNOTATION,
    STORAGE_ANNOTATION,
    owner_reference,
    ray_job_name,
)
from trainjob_operator.network_policy import authentication
from trainjob_operator.pods import (
    ENTRY_POINT,
    HEAD_START,
    RAY_START,
    head_template,
    multiply_quantity,
    resources,
    submitter_template,
    worker_template,
)
from trainjob_operator.queues import queue_of
from trainjob_operator.safety import check_allowed
from trainjob_operator.settings import Defaults, NodePool, Settings
from trainjob_operator.snapshot import snapshot

_VERSION = version("trainjob")

_NO_DEFAULT = "none"

_NO_STORAGE = (
    "spec.storage: the run has no storage: set it in a new TrainJob, or have the administrator set defaults.storage in "
    "the operator's settings"
)


def with_storage(job: TrainJob, previous: Storage | None, settings: Settings) -> TrainJob:
    """`job` with its own storage. If it has none, it gets `previous`, the storage that the run began with, or the
    settings' default."""
    if job.spec.storage is not None:
        return job
    storage = previous or _default_storage(str(job.metadata.namespace), settings.defaults)
    return job.model_copy(update={"spec": job.spec.model_copy(update={"storage": storage})})


def storage_of(ray_job: Mapping[str, Any] | None) -> Storage | None:
    """The storage of a RayJob's run, from its annotation."""
    written = (ray_job or {}).get("metadata", {}).get("annotations", {}).get(STORAGE_ANNOTATION, "")
    try:
        return Storage.model_validate_json(written, by_alias=True, by_name=False)
    except ValidationError:
        return None


def _default_storage(namespace: str, defaults: Defaults) -> Storage | None:
    """The settings' default for a namespace. Each namespace gets a folder of its own in a shared URI; a claim belongs
    to a namespace anyway."""
    shared = defaults.storage
    if namespace in defaults.namespace_storage or shared is None or shared.uri is None:
        return defaults.namespace_storage.get(namespace, shared)
    return shared.model_copy(update={"uri": f"{shared.uri.rstrip('/')}/{namespace}"})


def render(job: TrainJob, settings: Settings, training: TrainingStatus | None = None) -> KubernetesObject:
    """The RayJob of `job`, whose training process has reported `training`. Raises RayJobError if the job has no
    storage, its node pool is unknown, or it is not allowed something it asks for."""
    if job.spec.storage is None:
        raise RayJobError("NoStorage", _NO_STORAGE)
    check_allowed(job, node_pool(job, settings), settings)
    labels = job.metadata.labels | {UID_LABEL: job.metadata.uid, "app.kubernetes.io/managed-by": MANAGER}
    ray_job: KubernetesObject = {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {
            "name": ray_job_name(job.metadata.name),
            "namespace": job.metadata.namespace,
            "labels": labels,
            "annotations": {
                NAME_ANNOTATION: job.metadata.name,
                DIGEST_ANNOTATION: digest(settings),
                REQUESTED_WORKERS_ANNOTATION: requested_workers(job),
                DEFAULT_START_ANNOTATION: settings.defaults.start_deadline or _NO_DEFAULT,
                STORAGE_ANNOTATION: job.spec.storage.model_dump_json(by_alias=True, exclude_none=True),
            },
            "ownerReferences": [owner_reference(job)],
        },
        "spec": _mutable_spec(job, settings.defaults.start_deadline, training)
        | {
            "entrypoint": ENTRY_POINT,
            "submissionMode": "K8sJobMode",
            "submitterPodTemplate": submitter_template(job, settings),
            "shutdownAfterJobFinishes": True,
            "rayClusterSpec": _ray_cluster(job, settings),
        },
    }
    ray_job["metadata"]["annotations"][CONTENT_ANNOTATION] = _sha256(json.dumps(ray_job, sort_keys=True))
    return ray_job


def requested_workers(job: TrainJob) -> str:
    """`spec.workers` as the user wrote it, before the settings' defaults."""
    return job.spec.workers.model_dump_json(by_alias=True, exclude_defaults=True)


def mutable_fields(
    job: TrainJob, ray_job: Mapping[str, Any], training: TrainingStatus | None = None
) -> KubernetesObject:
    """A merge patch with the fields that may change on any RayJob. It does not depend on the current settings:
    otherwise two operators with different settings would keep overwriting each other's RayJobs."""
    annotations = ray_job["metadata"].get("annotations", {})
    spec = _mutable_spec(job, annotations.get(DEFAULT_START_ANNOTATION), training)
    if queue_of(ray_job) is not None:
        spec.pop("suspend", None)
    return {
        "metadata": {"labels": {UID_LABEL: job.metadata.uid}, "annotations": {NAME_ANNOTATION: job.metadata.name}},
        "spec": spec,
    }


def _mutable_spec(job: TrainJob, default_start: str | None, training: TrainingStatus | None) -> KubernetesObject:
    """Spec fields that may change after the RayJob's creation. KubeRay ignores changes of other fields until the next
    attempt, or refuses them. The start deadline is null if there should be none, and missing if no default is known."""
    spec: KubernetesObject = {"backoffLimit": 0 if has_failed_for_good(training) else job.spec.retries}
    start = job.spec.deadlines.start or default_start
    if start is not None:
        spec["preRunningDeadlineSeconds"] = None if start == _NO_DEFAULT else seconds(start)
    if QUEUE_LABEL not in job.metadata.labels:  # in a queue, Kueue sets it
        spec["suspend"] = job.spec.suspend
    return spec


def start_seconds(job: TrainJob, ray_job: Mapping[str, Any] | None, settings: Settings) -> int | None:
    """The start deadline of an attempt in seconds: the RayJob's or, without a RayJob, the one that it would get."""
    if ray_job is not None:
        return ray_job["spec"].get("preRunningDeadlineSeconds")
    start = job.spec.deadlines.start or settings.defaults.start_deadline
    return None if start is None else seconds(start)


def _ray_cluster(job: TrainJob, settings: Settings) -> KubernetesObject:
    workers, defaults, pool = job.spec.workers, settings.defaults, node_pool(job, settings)
    per_pod = workers_per_pod(job, pool)
    pods = job.spec.worker_slots // per_pod
    cpus = workers.cpus or defaults.worker_cpus
    ray_cpus = per_pod * max(1, int(cpus)) + max(1, ceil(defaults.data_cpus))
    gpus = per_pod * workers.gpus
    container = resources(
        per_pod * cpus + defaults.data_cpus,
        multiply_quantity(workers.memory or defaults.worker_memory, per_pod),
        gpus,
        pool.gpu_resource,
    )
    return authentication(settings.network) | {
        "rayVersion": settings.ray_version,
        "headGroupSpec": {
            "rayStartParams": HEAD_START,
            "template": head_template(job, settings, snapshot(job, cpus), pods),
        },
        "workerGroupSpecs": [
            {
                "groupName": "workers",
                "replicas": pods,
                "minReplicas": ceil(workers.minimum / per_pod) if workers.minimum is not None else pods,
                "maxReplicas": pods,
                "rayStartParams": RAY_START
                | {
                    "num-cpus": str(ray_cpus),
                    "num-gpus": str(gpus),
                    "resources": json.dumps(json.dumps({WORKER_RESOURCE: per_pod})),
                },
                "template": worker_template(job, settings, pool, per_pod, container, pods),
            }
        ],
    }


def has_failed_for_good(training: TrainingStatus | None) -> bool:
    """Whether the training process has reported a failure that must not be retried."""
    return training is not None and training.failure is not None and not training.failure.retryable


def node_pool(job: TrainJob, settings: Settings) -> NodePool:
    name = job.spec.workers.node_pool
    if name is None:
        return NodePool()
    if name not in settings.node_pools:
        known = ", ".join(sorted(settings.node_pools)) or "none"
        raise RayJobError("UnknownNodePool", f"spec.workers.nodePool: unknown node pool {name}; known pools: {known}")
    return settings.node_pools[name]


def workers_per_pod(job: TrainJob, pool: NodePool) -> int:
    """`spec.workers.perPod`, or the largest divisor of the worker count that fits on a node's GPUs."""
    workers = job.spec.workers
    if pool.is_sliced and workers.gpus and (workers.per_pod or 1) > 1:
        raise RayJobError(
            "InvalidSpec", f"spec.workers.perPod: must be 1 in node pool {workers.node_pool}, whose GPUs are slices"
        )
    if workers.per_pod is not None:
        return workers.per_pod
    most = min(pool.gpus_per_node, workers.count) if workers.gpus else 1
    return next(number for number in range(most, 0, -1) if workers.count % number == 0)


def digest(settings: Settings) -> str:
    """Identifies the version and settings that a RayJob was rendered with. RayJobs with another digest are left
    alone."""
    return _sha256(f"{_VERSION} {settings.model_dump_json()}")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
