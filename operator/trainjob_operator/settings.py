"""The operator's settings: one YAML file, in a cluster from the chart's values."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from trainjob.api.cluster import (
    OWN_VOLUMES,
    Affinity,
    Annotations,
    CPUs,
    Duration,
    KubernetesObject,
    Labels,
    Quantity,
    ResourceName,
    Toleration,
)
from trainjob.api.load import checked, read_document, without_nulls
from trainjob.api.trainjob import Storage
from trainjob.schema.base import StrictModel, refuse_conflicts

Name = Annotated[str, Field(min_length=1)]
DeviceName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Capability = Annotated[str, Field(pattern=r"^[A-Z][A-Z_]*$")]


class NodePool(StrictModel):
    """Nodes that are alike; a TrainJob names them in `spec.workers.nodePool`."""

    node_selector: Labels = {}
    """Labels of the pool's nodes."""
    tolerations: list[Toleration] = []
    """Taints that the pool's nodes have."""
    affinity: Affinity | None = None
    """Affinity of the pods; a job may add kinds of affinity that the pool has not."""
    gpu_resource: Annotated[str, Field(pattern=r"^(nvidia|amd)\.com/.+$")] = "nvidia.com/gpu"
    """Name of the GPU resource, of NVIDIA or AMD: nvidia.com/gpu, nvidia.com/mig-3g.40gb, amd.com/gpu …"""
    gpus_per_node: Annotated[int, Field(ge=1)] = 1
    """GPUs of one node: as many workers share a pod, so that they talk over the node's own links.
    Always 1 for slices (MIG)."""
    resources: dict[DeviceName, Annotated[int, Field(ge=1)]] = {}
    """Devices of each pod besides GPUs, by the names of their resources: `rdma/hca: 1`, `vpc.amazonaws.com/efa: 4`."""
    env: dict[VariableName, str] = {}
    """Environment variables of the pods, such as NCCL's; a job's own take their place."""
    annotations: Annotations = {}
    """Annotations of the pods, such as the name of a second network."""
    capabilities: list[Capability] = []
    """Capabilities of the pods, such as IPC_LOCK, which is more than Pod Security's level `baseline` allows."""
    runtime_class_name: ResourceName | None = None
    """Runtime class of the pods."""
    priority_class_name: ResourceName | None = None
    """Priority class of the pods."""
    pod: KubernetesObject = {}
    """Any other fields of the pods' spec; the administrator's, so they may be what a TrainJob may not ask for."""
    namespaces: list[ResourceName] = []
    """Namespaces whose TrainJobs may use the pool; all, if none is named."""

    def admits(self, namespace: str | None) -> bool:
        """Whether TrainJobs of a namespace may use the pool."""
        return not self.namespaces or namespace in self.namespaces

    @property
    def is_amd(self) -> bool:
        return self.gpu_resource.startswith("amd.com/")

    @property
    def is_sliced(self) -> bool:
        """Whether its GPUs are slices (MIG). A process can use a single one, and no two of a pod can be told apart by
        their number, as Ray tells its workers' GPUs: each worker has a pod of its own."""
        return self.gpu_resource.startswith("nvidia.com/mig-")

    @model_validator(mode="after")
    def _gives_slices_one_by_one(self) -> Self:
        if self.is_sliced and self.gpus_per_node > 1:
            refuse_conflicts(
                [("gpusPerNode", f"must be 1 for slices ({self.gpu_resource}): each worker has a pod of its own")]
            )
        return self

    @model_validator(mode="after")
    def _counts_gpus_once(self) -> Self:
        if self.gpu_resource in self.resources:
            refuse_conflicts(
                [("resources", f"{self.gpu_resource} is asked for as gpuResource, by what a TrainJob says")]
            )
        return self

    @field_validator("tolerations")
    @classmethod
    def _tolerates_what_has_a_name(cls, tolerations: list[KubernetesObject]) -> list[KubernetesObject]:
        refuse_conflicts(
            (f"{number}.key", "must be the name of a taint")
            for number, toleration in enumerate(tolerations)
            if not isinstance(toleration.get("key"), str | None)
        )
        return tolerations

    @field_validator("pod")
    @classmethod
    def _leaves_the_operators_own_alone(cls, pod: KubernetesObject) -> KubernetesObject:
        refuse_conflicts(
            (name, f"is not the pool's to set: {where}") for name, where in _NOT_A_POOLS.items() if name in pod
        )
        volumes: Any = pod.get("volumes", [])
        if not isinstance(volumes, list) or not all(map(_has_name, volumes)):
            refuse_conflicts([("volumes", "must be a list of volumes, each with a name")])
        if any(volume["name"] in OWN_VOLUMES for volume in volumes):
            refuse_conflicts([("volumes", f"{', '.join(OWN_VOLUMES)} are names of volumes that the operator adds")])
        return pod


_OF_A_JOB = "the operator sets it, by what a TrainJob says"
_NOT_A_POOLS = {
    "containers": "the operator makes them",
    "nodeSelector": "set nodeSelector of the pool itself",
    "tolerations": "set tolerations of the pool itself",
    "affinity": "set affinity of the pool itself",
    "runtimeClassName": "set runtimeClassName of the pool itself",
    "priorityClassName": "set priorityClassName of the pool itself",
    "securityContext": _OF_A_JOB,
    "serviceAccountName": _OF_A_JOB,
    "automountServiceAccountToken": "workers get no token",
    "imagePullSecrets": "set imagePullSecrets of the settings",
}
"""Fields of a pod's spec that the operator would override, and what to do instead."""


def _has_name(volume: Any) -> bool:
    return isinstance(volume, dict) and isinstance(volume.get("name"), str)


class Resources(StrictModel):
    """What a container asks for and may use at most."""

    cpus: CPUs
    """CPU cores."""
    memory: Quantity
    """Memory."""


class Defaults(StrictModel):
    """What a TrainJob gets for what it does not say."""

    storage: Storage | None = None
    """`spec.storage`. The runs of each namespace are kept in a folder of its name in `uri`."""
    namespace_storage: dict[ResourceName, Storage] = {}
    """`spec.storage` by namespace, in place of `storage`; `uri` is taken as it is."""
    head: Resources = Resources(cpus=1, memory="4Gi")
    """The head pod, where the driver and Ray's own processes run. It offers no CPU to training."""
    worker_cpus: CPUs = 1
    """CPU cores of each worker."""
    worker_memory: Quantity = "4Gi"
    """Memory of each worker."""
    data_cpus: CPUs = 1
    """CPU cores of every worker pod that are kept for Ray Data: a job whose workers take them all would hang."""
    scratch: Quantity = "64Gi"
    """Most that a pod may keep in /tmp, and in /home/trainjob; one that has more is evicted."""
    cpu_limits: bool = False
    """Whether containers have a CPU limit, which equals their request; for clusters whose quotas or LimitRanges ask for
    one."""
    start_deadline: Duration | None = None
    """`spec.deadlines.start`."""
    labels: Labels = {}
    """Labels of every pod."""
    annotations: Annotations = {}
    """Annotations of every pod."""

    @model_validator(mode="after")
    def _storage_is_not_relative(self) -> Self:
        named = {f"namespaceStorage.{name}": storage for name, storage in self.namespace_storage.items()}
        refuse_conflicts(
            (f"{field}.uri", "must start with s3:// or gs://, or be an absolute path")
            for field, storage in {"storage": self.storage, **named}.items()
            if storage and storage.uri and "://" not in storage.uri and not storage.uri.startswith("/")
        )
        return self


class Network(StrictModel):
    """Who may reach the Ray processes of a job, which run any code that they are given."""

    ray_tokens: bool = True
    """Whether Ray takes requests only with the token of the job's own cluster, which KubeRay keeps in a Secret."""
    policies: bool = True
    """Whether each job has a NetworkPolicy, by which only its own pods and KubeRay reach its pods."""
    kuberay_namespace: ResourceName | None = None
    """Namespace of KubeRay's operator; any, if none is named."""
    kuberay_labels: Labels = {"app.kubernetes.io/component": "kuberay-operator"}
    """Labels of its pods."""


class Settings(StrictModel):
    """All of the operator's settings."""

    image: Name
    """Image with trainjob in it, for TrainJobs that name none."""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    """When the image is pulled."""
    image_pull_secrets: list[ResourceName] = []
    """Secrets for pulling the image, in addition to the job's own."""
    ray_version: Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$")] = "2.60.0"
    """Ray's version in the image."""
    node_pools: dict[ResourceName, NodePool] = {}
    """Node pools by name."""
    defaults: Defaults = Defaults()
    """What a TrainJob gets for what it does not say."""
    unrestricted_namespaces: list[ResourceName] = []
    """Namespaces whose TrainJobs may ask for more than Pod Security's level `restricted` allows."""
    network: Network = Network()
    """Who may reach the Ray processes of a job."""
    namespaces: list[ResourceName] = []
    """Namespaces that are watched; all, if none is named."""


def load_settings(path: Path) -> Settings:
    """Raises UserError that names every wrong field and its line. The YAML is read as a TrainJob's is."""
    document = read_document(path)
    return checked(without_nulls(document.data, Settings), document, Settings)
