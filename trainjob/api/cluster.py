"""`spec.pods` and `spec.deadlines`: what a job asks of a Kubernetes cluster; a laptop ignores it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from trainjob.api.base import StrictModel, refuse

WORKER_RESOURCE = "trainjob_worker"
"""What Ray calls a place for a worker: a worker pod has as many as workers are meant to share it."""

JOB_FOLDER = "/etc/trainjob"
"""Where the head pod has the TrainJob."""
STORAGE_PATH = "/mnt/storage"
"""Where every pod has storage's PersistentVolumeClaim."""
OWN_PATHS = (JOB_FOLDER, STORAGE_PATH)
HOME = "/home/trainjob"
SCRATCH = {"trainjob-tmp": "/tmp", "trainjob-home": HOME}
"""Volumes of what pods may write to, and where they are mounted unless the job mounts one of its own there."""
OWN_VOLUMES = ("trainjob", "trainjob-storage", *SCRATCH)
"""Names of the volumes that the operator adds to pods."""

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}

DURATION = r"^[1-9][0-9]{0,3}[smhd]$"
QUANTITY = r"^[1-9][0-9]{0,11}(k|M|G|T|Ki|Mi|Gi|Ti)?$"
RESOURCE_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"

Duration = Annotated[str, Field(pattern=DURATION)]
"""A whole number of seconds, minutes, hours or days: `90s`, `30m`, `6h`, `7d`."""
Quantity = Annotated[str, Field(pattern=QUANTITY)]
"""Bytes as Kubernetes writes them: `500M`, `16Gi`."""
ResourceName = Annotated[str, Field(pattern=RESOURCE_NAME, max_length=253)]
"""Name of an object in Kubernetes."""


def seconds(duration: str) -> int:
    return int(duration[:-1]) * UNITS[duration[-1]]


@dataclass(frozen=True)
class KubernetesType:
    """Says that a field holds one of Kubernetes' own objects, by its class in the `kubernetes` package."""

    name: str


KubernetesObject = dict[str, Any]
EnvVar = Annotated[KubernetesObject, KubernetesType("V1EnvVar")]
EnvFromSource = Annotated[KubernetesObject, KubernetesType("V1EnvFromSource")]
Volume = Annotated[KubernetesObject, KubernetesType("V1Volume")]
VolumeMount = Annotated[KubernetesObject, KubernetesType("V1VolumeMount")]
Toleration = Annotated[KubernetesObject, KubernetesType("V1Toleration")]
Affinity = Annotated[KubernetesObject, KubernetesType("V1Affinity")]
LocalObjectReference = Annotated[KubernetesObject, KubernetesType("V1LocalObjectReference")]
PodSecurityContext = Annotated[KubernetesObject, KubernetesType("V1PodSecurityContext")]

Items = Field(max_length=64)
Labels = Annotated[dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=64)]
Annotations = Annotated[dict[str, Annotated[str, Field(max_length=4096)]], Field(max_length=64)]


class Pods(StrictModel):
    """What a job's pods have besides what its workers ask for."""

    image: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    """Image with trainjob in it; by default the operator's setting."""
    image_pull_secrets: Annotated[list[LocalObjectReference], Items] = []
    """Secrets that the image is pulled with."""
    service_account_name: ResourceName | None = None
    """Service account of the pods."""
    env: Annotated[list[EnvVar], Items] = []
    """Environment variables; those from secrets by reference."""
    env_from: Annotated[list[EnvFromSource], Items] = []
    """Environment variables from whole ConfigMaps and Secrets."""
    volumes: Annotated[list[Volume], Items] = []
    """Volumes."""
    volume_mounts: Annotated[list[VolumeMount], Items] = []
    """Where the volumes are mounted, in every pod alike; besides, a pod may write to /tmp and /home/trainjob only."""
    node_selector: Labels = {}
    """Labels that a node must have, besides the node pool's."""
    tolerations: Annotated[list[Toleration], Items] = []
    """Taints that are tolerated, besides the node pool's."""
    affinity: Affinity | None = None
    """Which nodes and neighbours are wanted."""
    security_context: PodSecurityContext | None = None
    """Security settings; by default those that Pod Security's level `restricted` asks for."""
    labels: Labels = {}
    """Labels of the pods."""
    annotations: Annotations = {}
    """Annotations of the pods."""

    @model_validator(mode="after")
    def _leaves_the_operators_own_alone(self) -> Self:
        refuse(self._misfits())
        return self

    def _misfits(self) -> Iterator[tuple[str, str]]:
        if any(volume.get("name") in OWN_VOLUMES for volume in self.volumes):
            yield "volumes", f"{', '.join(OWN_VOLUMES)} are names of volumes that the operator adds: choose others"
        paths = [str(mount.get("mountPath")) for mount in self.volume_mounts]
        if any(lies_in(path, own) for path in paths for own in OWN_PATHS):
            yield "volumeMounts", f"{' and '.join(OWN_PATHS)} are where the operator mounts volumes: choose other paths"


def lies_in(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or is inside it."""
    return f"{path}/".startswith(f"{folder.rstrip('/')}/")


class Deadlines(StrictModel):
    """How long a job may take; it fails when that is over."""

    total: Duration | None = None
    """From the job's start to its end, over all attempts; time suspended counts, time in a queue does not."""
    start: Duration | None = None
    """From the start of an attempt until all its pods are ready."""
