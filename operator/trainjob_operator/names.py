"""Names, labels and annotations of the objects that the operator creates."""

import hashlib
import re

from trainjob.api import TrainJob
from trainjob.api.cluster import KubernetesObject
from trainjob.api.names import GROUP

MANAGER = "trainjob-operator"
"""Field manager of everything the operator writes."""
NAME_ANNOTATION = f"{GROUP}/name"
"""On a RayJob and its pods: the TrainJob's name, which may be too long for a label."""
WORKERS_ANNOTATION = f"{GROUP}/workers"
"""On a worker pod: the number of workers in it."""
DIGEST_ANNOTATION = f"{GROUP}/rendered"
"""On a RayJob: digest of the operator's version and settings that it was rendered with."""
CONTENT_ANNOTATION = f"{GROUP}/content"
"""On a RayJob: digest of all its rendered fields, which changes also if one is no longer rendered."""
REQUESTED_WORKERS_ANNOTATION = f"{GROUP}/asked-workers"
"""On a RayJob: the TrainJob's `spec.workers` that it was rendered from."""
STORAGE_ANNOTATION = f"{GROUP}/storage"
"""On a RayJob: the storage of its run."""
DEFAULT_START_ANNOTATION = f"{GROUP}/default-start-deadline"
"""On a RayJob: the settings' `defaults.startDeadline` that it was rendered with, or `none`."""
NETWORK_ANNOTATION = f"{GROUP}/network"
"""On a NetworkPolicy: the settings' `network` that it was rendered with."""
SPEC_ANNOTATION = f"{GROUP}/trainjob"
"""On the head pod: the TrainJob as the training process reads it."""
SERVES_LABEL = f"{GROUP}/serves"
"""On the pods of a RayService: its name."""
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"

MAX_RAY_JOB_CHARACTERS = 47
_DIGEST = 8


def ray_job_name(name: str) -> str:
    """The TrainJob's own name if KubeRay accepts it: at most 47 characters, DNS-1035 (starts with a letter, no dots).

    Other names are cut and get a digest of the whole name, so that they stay unique.
    """
    if len(name) <= MAX_RAY_JOB_CHARACTERS and re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name):
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
    readable = re.sub(r"[^a-z0-9]+", "-", name)[: MAX_RAY_JOB_CHARACTERS - _DIGEST - len("tj--")].strip("-")
    return f"tj-{readable}-{digest}"


def owner_reference(job: TrainJob) -> KubernetesObject:
    """The owner reference that has an object deleted with `job`."""
    return {
        "apiVersion": job.api_version,
        "kind": job.kind,
        "name": job.metadata.name,
        "uid": job.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
