"""The operator's settings: one YAML file, generated from the chart's values in a cluster."""

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
from trainjob.api.notify import Receivers
from trainjob.api.storage import Storage
from trainjob.schema.base import StrictModel, refuse_conflicts

Name = Annotated[str, Field(min_length=1)]
DeviceName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Host = Annotated[str, Field(pattern=r"^[A-Za-z0-9*:._-]+$", max_length=253)]
Capability = Annotated[str, Field(pattern=r"^[A-Z][A-Z_]*$")]


class NodePool(StrictModel):
    """A group of similar nodes, which a TrainJob selects with `spec.workers.nodePool`."""

    node_selector: Labels = {}
    """Labels of the pool's nodes."""
    tolerations: list[Toleration] = []
    """Tolerations for the taints of the pool's nodes."""
    affinity: Affinity | None = None
    """Affinity of the pods; a job may add kinds of affinity that the pool does not set."""
    gpu_resource: Annotated[str, Field(pattern=r"^(nvidia|amd)\.com/.+$")] = "nvidia.com/gpu"
    """Name of the GPU resource, for NVIDIA or AMD: nvidia.com/gpu, nvidia.com/mig-3g.40gb, amd.com/gpu …"""
    gpus_per_node: Annotated[int, Field(ge=1)] = 1
    """GPUs per node, and workers per pod, so that workers communicate over the node's own links. Always 1 for slices
    (MIG)."""
    resources: dict[DeviceName, Annotated[int, Field(ge=1)]] = {}
    """Devices of each pod other than GPUs, by resource name: `rdma/hca: 1`, `vpc.amazonaws.com/efa: 4`."""
    env: dict[VariableName, str] = {}
    """Environment variables of the pods, such as NCCL's; a job's own override them."""
    annotations: Annotations = {}
    """Annotations of the pods, for example to attach a second network."""
    capabilities: list[Capability] = []
    """Capabilities of the worker pods, such as IPC_LOCK, which exceeds Pod Security's level `baseline`."""
    runtime_class_name: ResourceName | None = None
    """Runtime class of the pods."""
    priority_class_name: ResourceName | None = None
    """Priority class of the pods."""
    pod: KubernetesObject = {}
    """Any other fields of the pods' spec. The administrator may set fields here that a TrainJob may not request."""
    namespaces: list[ResourceName] = []
    """Namespaces whose TrainJobs may use the pool; all if empty."""

    def admits(self, namespace: str | None) -> bool:
        """Whether TrainJobs of a namespace may use the pool."""
        return not self.namespaces or namespace in self.namespaces

    @property
    def is_amd(self) -> bool:
        return self.gpu_resource.startswith("amd.com/")

    @property
    def is_sliced(self) -> bool:
        """Whether its GPUs are slices (MIG). A process can use only one slice, and Ray identifies workers' GPUs by
        numbers, which slices in a pod do not have. Each worker therefore has its own pod."""
        return self.gpu_resource.startswith("nvidia.com/mig-")

    @model_validator(mode="after")
    def _check_slices(self) -> Self:
        if self.is_sliced and self.gpus_per_node > 1:
            refuse_conflicts(
                [("gpusPerNode", f"must be 1 for slices ({self.gpu_resource}): each worker gets its own pod")]
            )
        return self

    @model_validator(mode="after")
    def _check_gpu_resource(self) -> Self:
        if self.gpu_resource in self.resources:
            refuse_conflicts([("resources", f"{self.gpu_resource} is the gpuResource, which TrainJobs request")])
        return self

    @field_validator("tolerations")
    @classmethod
    def _check_toleration_keys(cls, tolerations: list[KubernetesObject]) -> list[KubernetesObject]:
        refuse_conflicts(
            (f"{number}.key", "must be the name of a taint")
            for number, toleration in enumerate(tolerations)
            if not isinstance(toleration.get("key"), str | None)
        )
        return tolerations

    @field_validator("pod")
    @classmethod
    def _check_pod_fields(cls, pod: KubernetesObject) -> KubernetesObject:
        refuse_conflicts(
            (name, f"cannot be set for a pool: {where}") for name, where in _NOT_SET_BY_POOLS.items() if name in pod
        )
        volumes: Any = pod.get("volumes", [])
        if not isinstance(volumes, list) or not all(map(_has_name, volumes)):
            refuse_conflicts([("volumes", "must be a list of volumes, each with a name")])
        if any(volume["name"] in OWN_VOLUMES for volume in volumes):
            refuse_conflicts([("volumes", f"{', '.join(OWN_VOLUMES)} are names of volumes that the operator adds")])
        return pod


_SET_FROM_TRAINJOB = "the operator sets it from the TrainJob"
_NOT_SET_BY_POOLS = {
    "containers": "the operator creates them",
    "nodeSelector": "set nodeSelector of the pool itself",
    "tolerations": "set tolerations of the pool itself",
    "affinity": "set affinity of the pool itself",
    "runtimeClassName": "set runtimeClassName of the pool itself",
    "priorityClassName": "set priorityClassName of the pool itself",
    "securityContext": _SET_FROM_TRAINJOB,
    "serviceAccountName": _SET_FROM_TRAINJOB,
    "automountServiceAccountToken": "workers get no token",
    "imagePullSecrets": "set imagePullSecrets of the settings",
}
"""Pod spec fields that the operator would override, with alternatives."""


def _has_name(volume: Any) -> bool:
    return isinstance(volume, dict) and isinstance(volume.get("name"), str)


class Resources(StrictModel):
    """A container's resource requests and limits."""

    cpus: CPUs
    """CPU cores."""
    memory: Quantity
    """Memory."""


class Defaults(StrictModel):
    """Defaults for TrainJobs."""

    storage: Storage | None = None
    """Default for `spec.storage`. Each namespace's runs are in a folder of its name in `uri`."""
    namespace_storage: dict[ResourceName, Storage] = {}
    """Default for `spec.storage` by namespace, instead of `storage`; `uri` is used unchanged."""
    head: Resources = Resources(cpus=1, memory="4Gi")
    """The head pod, which runs the driver and Ray's own processes. It offers no CPU for training."""
    worker_cpus: CPUs = 1
    """CPU cores of each worker."""
    worker_memory: Quantity = "4Gi"
    """Memory of each worker."""
    data_cpus: CPUs = 1
    """CPU cores of every worker pod reserved for Ray Data; without them, a job would hang."""
    scratch: Quantity = "64Gi"
    """Maximum size of a pod's /tmp, and of its /home/trainjob; a pod that exceeds it is evicted."""
    cpu_limits: bool = False
    """Whether containers have a CPU limit equal to their request, for clusters whose quotas or LimitRanges require
    one."""
    start_deadline: Duration | None = None
    """Default for `spec.deadlines.start`."""
    labels: Labels = {}
    """Labels of every pod."""
    annotations: Annotations = {}
    """Annotations of every pod."""

    @model_validator(mode="after")
    def _check_storage_uris(self) -> Self:
        named = {f"namespaceStorage.{name}": storage for name, storage in self.namespace_storage.items()}
        refuse_conflicts(
            (f"{field}.uri", "must start with s3:// or gs://, or be an absolute path")
            for field, storage in {"storage": self.storage, **named}.items()
            if storage and storage.uri and "://" not in storage.uri and not storage.uri.startswith("/")
        )
        return self


class NetworkSettings(StrictModel):
    """Access to the Ray processes of a job, which execute any code they receive."""

    ray_tokens: bool = True
    """Whether Ray requires the token of the job's own cluster, which KubeRay keeps in a Secret."""
    policies: bool = True
    """Whether each job has a NetworkPolicy that lets only its own pods and KubeRay reach its pods."""
    kuberay_namespace: ResourceName | None = None
    """Namespace of KubeRay's operator; any if empty."""
    kuberay_labels: Labels = {"app.kubernetes.io/component": "kuberay-operator"}
    """Labels of KubeRay's operator pods."""


class NotifySettings(StrictModel):
    """Notifications about TrainJobs (`spec.notify`)."""

    secret_names: list[ResourceName] = []
    """Names of the Secrets of receivers, in the TrainJobs' namespaces. The operator may read no others; if there are
    none, notifications are off."""
    hosts: list[Host] = []
    """Hosts that notifications may be sent to, such as `hooks.example.com` or `*.example.com`; all if empty. Loopback
    and link-local addresses and those of clouds' metadata servers are refused unless they are listed themselves."""
    receivers: Receivers = []
    """Default for `spec.notify`."""

    @model_validator(mode="after")
    def _check_secrets(self) -> Self:
        refuse_conflicts(
            (f"receivers.{number}", f"the Secret {receiver.secret_name} is not in secretNames")
            for number, receiver in enumerate(self.receivers)
            if receiver.secret_name not in self.secret_names
        )
        return self


class Settings(StrictModel):
    """All of the operator's settings."""

    image: Name
    """Default image of TrainJobs, with trainjob installed."""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    """Pull policy of the image."""
    image_pull_secrets: list[ResourceName] = []
    """Secrets for pulling the image, in addition to the job's own."""
    ray_version: Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$")] = "2.60.0"
    """Ray version in the image."""
    node_pools: dict[ResourceName, NodePool] = {}
    """Node pools by name."""
    defaults: Defaults = Defaults()
    """Defaults for TrainJobs."""
    unrestricted_namespaces: list[ResourceName] = []
    """Namespaces whose TrainJobs may exceed Pod Security's level `restricted`."""
    network: NetworkSettings = NetworkSettings()
    """Access to the Ray processes of a job."""
    notify: NotifySettings = NotifySettings()
    """Notifications about TrainJobs (`spec.notify`)."""
    namespaces: list[ResourceName] = []
    """Watched namespaces; all if empty."""


def load_settings(path: Path) -> Settings:
    """Parses the settings' YAML like a TrainJob's. Raises UserError with every wrong field and its line."""
    document = read_document(path)
    return checked(without_nulls(document.data, Settings), document, Settings)
