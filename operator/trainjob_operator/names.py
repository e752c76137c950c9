"""Names and labels of what the operator makes."""

import hashlib
import re

from trainjob.api import TrainJob
from trainjob.api.cluster import KubernetesObject
from trainjob.api.trainjob import GROUP

MANAGER = "trainjob-operator"
"""Field manager of everything the operator writes."""
NAME_ANNOTATION = f"{GROUP}/name"
"""On a RayJob and its pods: the TrainJob's name, which may be too long for a label."""
WORKERS_ANNOTATION = f"{GROUP}/workers"
"""On a worker pod: how many workers share it."""
RENDERED_ANNOTATION = f"{GROUP}/rendered"
"""On a RayJob: digest of what it was made from."""
ASKED_ANNOTATION = f"{GROUP}/asked-workers"
"""On a RayJob: the TrainJob's `spec.workers` that it was made from."""
STORAGE_ANNOTATION = f"{GROUP}/storage"
"""On a RayJob: where its run is kept."""
DEFAULT_START_ANNOTATION = f"{GROUP}/default-start-deadline"
"""On a RayJob: the settings' `defaults.startDeadline` that it was made with, or `none`."""
NETWORK_ANNOTATION = f"{GROUP}/network"
"""On a NetworkPolicy: the settings' `network` that it was made with."""
SPEC_ANNOTATION = f"{GROUP}/trainjob"
"""On the head pod: the TrainJob, which the training process reads."""
SERVES_LABEL = f"{GROUP}/serves"
"""On the pods of a RayService: its name."""
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"

LONGEST_RAY_JOB = 47
_DIGEST = 8


def ray_job_name(name: str) -> str:
    """The TrainJob's own name where KubeRay takes it: at most 47 characters, DNS-1035 (a letter first, no dots).

    Any other is cut and gets a digest of the whole, so that two never share one.
    """
    if len(name) <= LONGEST_RAY_JOB and re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name):
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
    readable = re.sub(r"[^a-z0-9]+", "-", name)[: LONGEST_RAY_JOB - _DIGEST - len("tj--")].strip("-")
    return f"tj-{readable}-{digest}"


def owner_reference(job: TrainJob) -> KubernetesObject:
    """Says that an object is made for `job`, and goes with it."""
    return {
        "apiVersion": job.api_version,
        "kind": job.kind,
        "name": job.metadata.name,
        "uid": job.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
