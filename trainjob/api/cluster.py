"""`spec.pods` and `spec.deadlines`: settings for a Kubernetes cluster, ignored on a laptop."""

import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError, PydanticKnownError

from trainjob.schema.base import StrictModel
from trainjob.schema.expressions import Expression
from trainjob.schema.rules import FieldRule, RuledModel

WORKER_RESOURCE = "trainjob_worker"
"""Ray's custom resource for a worker slot; a worker pod has one for each of its workers."""

JOB_FOLDER = "/etc/trainjob"
"""The folder with the TrainJob in the head pod."""
LEAVING_FILE = "/dev/shm/trainjob-leaving"
"""A file that exists in a worker pod that is about to stop."""
STORAGE_PATH = "/mnt/storage"
"""The mount path of storage's PersistentVolumeClaim in every pod."""
OWN_PATHS = (JOB_FOLDER, STORAGE_PATH)
HOME = "/home/trainjob"
SCRATCH = {"trainjob-tmp": "/tmp", "trainjob-home": HOME}
"""Writable volumes of the pods with their mount paths, unless the job mounts its own volume there."""
OWN_VOLUMES = ("trainjob", "trainjob-storage", *SCRATCH)
"""Names of the volumes that the operator adds to pods."""

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}

CONTROLLER = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9._~-]+$"
DURATION = r"^[1-9][0-9]{0,3}[smhd]$"
QUANTITY = r"^((0\.[0-9]{0,2}[1-9]|[1-9][0-9]{0,11}(\.[0-9]{1,3})?)(k|M|G|T|Ki|Mi|Gi|Ti)|[1-9][0-9]{6,14})$"
"""A number below a million needs a unit, because 16 alone is probably 16Gi without its unit."""
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
"""Name of a Kubernetes object."""


def seconds(duration: str) -> int:
    return int(duration[:-1]) * UNITS[duration[-1]]


@dataclass(frozen=True)
class KubernetesType:
    """Marks a field that contains a Kubernetes object, by its class in the `kubernetes` package."""

    name: str


KubernetesObject = dict[str, Any]


def _with_texts(*keys: str) -> AfterValidator:
    """Refuses an object without these keys, which Kubernetes requires."""

    def checked(item: KubernetesObject) -> KubernetesObject:
        if missing := next((key for key in keys if not isinstance(item.get(key), str)), None):
            raise PydanticCustomError("required_key", "needs a {key}, which is a text", {"key": missing})
        return item

    return AfterValidator(checked)


EnvVar = Annotated[KubernetesObject, KubernetesType("V1EnvVar"), _with_texts("name")]
EnvFromSource = Annotated[KubernetesObject, KubernetesType("V1EnvFromSource")]
Volume = Annotated[KubernetesObject, KubernetesType("V1Volume"), _with_texts("name")]
VolumeMount = Annotated[KubernetesObject, KubernetesType("V1VolumeMount"), _with_texts("name", "mountPath")]
Toleration = Annotated[KubernetesObject, KubernetesType("V1Toleration")]
Affinity = Annotated[KubernetesObject, KubernetesType("V1Affinity")]
LocalObjectReference = Annotated[KubernetesObject, KubernetesType("V1LocalObjectReference"), _with_texts("name")]
PodSecurityContext = Annotated[KubernetesObject, KubernetesType("V1PodSecurityContext")]

Items = Field(max_length=64)
Labels = Annotated[dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=64)]
Annotations = Annotated[dict[str, Annotated[str, Field(max_length=4096)]], Field(max_length=64)]


class Pods(RuledModel):
    """Settings of a job's pods in addition to its workers' resources."""

    image: Annotated[str, Field(pattern=IMAGE, max_length=512)] | None = None
    """Image with trainjob installed; by default the operator's setting."""
    image_pull_secrets: Annotated[list[LocalObjectReference], Items] = []
    """Secrets for pulling the image."""
    service_account_name: ResourceName | None = None
    """Service account of the pods."""
    env: Annotated[list[EnvVar], Items] = []
    """Environment variables; use references for secrets."""
    env_from: Annotated[list[EnvFromSource], Items] = []
    """Environment variables from whole ConfigMaps and Secrets."""
    volumes: Annotated[list[Volume], Items] = []
    """Volumes."""
    volume_mounts: Annotated[list[VolumeMount], Items] = []
    """Mounts of the volumes, in every pod. Otherwise a pod can write only to /tmp and /home/trainjob."""
    node_selector: Labels = {}
    """Required node labels, in addition to the node pool's."""
    tolerations: Annotated[list[Toleration], Items] = []
    """Tolerations, in addition to the node pool's."""
    affinity: Affinity | None = None
    """Node and pod affinity."""
    scheduler_name: ResourceName | None = None
    """Scheduler of the pods; by default the cluster's, and for workers the node pool's."""
    cpu_limits: bool | None = None
    """Whether containers have a CPU limit equal to their request; by default the operator's setting. Training is faster
    without one, so set it only if a quota or LimitRange requires it."""
    security_context: PodSecurityContext | None = None
    """Security settings; by default those required by Pod Security's level `restricted`."""
    labels: Labels = {}
    """Labels of the pods."""
    annotations: Annotations = {}
    """Annotations of the pods."""

    @classmethod
    def rules(cls) -> tuple[FieldRule, ...]:
        return (
            FieldRule("volumeMounts", "every mount must name one of the volumes", _MOUNTS_HAVE_VOLUMES),
            FieldRule(
                "volumes",
                f"{', '.join(OWN_VOLUMES)} are names of volumes that the operator adds: choose others",
                _VOLUMES_HAVE_OTHER_NAMES,
            ),
            FieldRule(
                "volumeMounts",
                f"{' and '.join(OWN_PATHS)} are where the operator mounts volumes: choose other paths",
                _MOUNTS_HAVE_OTHER_PATHS,
            ),
        )


def lies_in(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or inside it."""
    return f"{path}/".startswith(f"{folder.rstrip('/')}/")


_MOUNTS_HAVE_VOLUMES = Expression(
    "(!has(self.volumeMounts) || self.volumeMounts.all(mount, has(self.volumes) && "
    "self.volumes.exists(volume, volume.name == mount.name)))",
    lambda pods: {mount["name"] for mount in pods.volume_mounts} <= {volume["name"] for volume in pods.volumes},
)
_VOLUMES_HAVE_OTHER_NAMES = Expression(
    f"(!has(self.volumes) || !self.volumes.exists(volume, volume.name in {list(OWN_VOLUMES)}))",
    lambda pods: all(volume["name"] not in OWN_VOLUMES for volume in pods.volumes),
)
_IS_AT_OWN_PATH = " || ".join(
    f"mount.mountPath == '{path}' || mount.mountPath.startsWith('{path}/')" for path in OWN_PATHS
)
_MOUNTS_HAVE_OTHER_PATHS = Expression(
    f"(!has(self.volumeMounts) || !self.volumeMounts.exists(mount, {_IS_AT_OWN_PATH}))",
    lambda pods: not any(lies_in(mount["mountPath"], own) for mount in pods.volume_mounts for own in OWN_PATHS),
)


class Deadlines(StrictModel):
    """Time limits of a job, which fails when one is exceeded."""

    total: Duration | None = None
    """Time limit from the job's start to its end, over all attempts. Time suspended counts; time in a queue does
    not."""
    start: Duration | None = None
    """Time limit from the start of an attempt until its driver has started. If no pods are ready by then, the attempt
    may be retried; otherwise the job fails."""
