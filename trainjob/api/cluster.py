"""`spec.pods` and `spec.deadlines`: what a job asks of a Kubernetes cluster; a laptop ignores it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticKnownError

from trainjob.schema.base import StrictModel, refuse_conflicts

WORKER_RESOURCE = "trainjob_worker"
"""What Ray calls a place for a worker: a worker pod has as many as workers are meant to share it."""

JOB_FOLDER = "/etc/trainjob"
"""Where the head pod has the TrainJob."""
LEAVING = "/dev/shm/trainjob-leaving"
"""A file that a worker pod has once it is about to go."""
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
QUANTITY = r"^((0\.[0-9]{0,2}[1-9]|[1-9][0-9]{0,11}(\.[0-9]{1,3})?)(k|M|G|T|Ki|Mi|Gi|Ti)|[1-9][0-9]{6,14})$"
"""A number below a million has a unit: 16 alone is 16Gi with its unit forgotten."""
CPUS = r"^(0\.[0-9]{0,2}[1-9]|[1-9][0-9]{0,3}(\.[0-9]{1,3})?|[1-9][0-9]{0,6}m)$"
IMAGE = (
    r"^[A-Za-z0-9][A-Za-z0-9_.-]*(:[0-9]+)?(/[a-z0-9_.-]+)*"
    r"(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@[A-Za-z0-9_+.-]+:[0-9a-fA-F]{32,})?$"
)
RESOURCE_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"

Duration = Annotated[str, Field(pattern=DURATION)]
"""A whole number of seconds, minutes, hours or days: `90s`, `30m`, `6h`, `7d`."""


def _as_text(amount: Any) -> Any:
    return str(amount) if isinstance(amount, int | float) and not isinstance(amount, bool) else amount


def _as_cores(amount: Any) -> Any:
    if not isinstance(amount, str):
        return amount
    if not re.fullmatch(CPUS, amount):
        raise PydanticKnownError("string_pattern_mismatch", {"pattern": CPUS})
    return int(amount[:-1]) / 1000 if amount.endswith("m") else float(amount)


_Number = Field(gt=0, lt=10_000)
_Bytes = Annotated[int, Field(ge=10**6, lt=10**15)] | Annotated[str, Field(pattern=QUANTITY)]
_Cores = Annotated[float, _Number] | Annotated[str, Field(pattern=CPUS)]
Quantity = Annotated[str, Field(pattern=QUANTITY), BeforeValidator(_as_text, json_schema_input_type=_Bytes)]
"""Bytes as Kubernetes writes them: `500M`, `1.5Gi`, `8000000000`."""
CPUs = Annotated[float, _Number, BeforeValidator(_as_cores, json_schema_input_type=_Cores)]
"""CPU cores as Kubernetes writes them: `2`, `0.5`, `500m`."""
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

    image: Annotated[str, Field(pattern=IMAGE, max_length=512)] | None = None
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
    scheduler_name: ResourceName | None = None
    """Scheduler that places the pods; by default the cluster's, and for workers the node pool's."""
    cpu_limits: bool | None = None
    """Whether containers have a CPU limit, which equals their request; by default the operator's setting. Where a quota
    or a LimitRange does not ask for limits, training is faster without."""
    security_context: PodSecurityContext | None = None
    """Security settings; by default those that Pod Security's level `restricted` asks for."""
    labels: Labels = {}
    """Labels of the pods."""
    annotations: Annotations = {}
    """Annotations of the pods."""

    @model_validator(mode="after")
    def _leaves_the_operators_own_alone(self) -> Self:
        refuse_conflicts(self._conflicts())
        return self

    def _conflicts(self) -> Iterator[tuple[str, str]]:
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
    """From the start of an attempt until its driver has started. Of an attempt that has no ready pods by then, a retry
    may follow; otherwise the job fails."""
