"""Checks what a TrainJob may ask for under the operator's settings: pure functions of both."""

from collections.abc import Iterator, Mapping
from typing import Any

from trainjob.api import TrainJob
from trainjob_operator.errors import RayJobError
from trainjob_operator.settings import NodePool, Settings

RESERVED = ("ray.io/", "trainjob.dev/")
"""Prefixes of labels and annotations by which KubeRay and this operator identify pods."""
RAY_AUTHENTICATION = ("RAY_AUTH_", "RAY_ENABLE_K8S_TOKEN_AUTH")
"""Prefixes of the variables that control Ray's token authentication."""

# Allowed by the level `restricted`: https://kubernetes.io/docs/concepts/security/pod-security-standards/
VOLUMES = frozenset(
    ("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret")
)
SYSCTLS = frozenset(
    (
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    )
)
SE_LINUX_TYPES = ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")
CONFINED = ("RuntimeDefault", "Localhost")
APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
"""Prefix of the annotations that selected AppArmor profiles before there were fields for them."""


def check_allowed(job: TrainJob, pool: NodePool, settings: Settings) -> None:
    """Raises a RayJobError that lists everything `job` asks for and may not have."""
    problems = [*_reserved_key_problems(job, settings.network.kuberay_labels), *_pool_problems(job, pool, settings)]
    if settings.network.ray_tokens:
        problems += _authentication_problems(job)
    if job.metadata.namespace not in settings.unrestricted_namespaces:
        problems += _pod_security_problems(job)
    if problems:
        raise RayJobError("NotAllowed", "; ".join(problems))


def _reserved_key_problems(job: TrainJob, kuberay_labels: Mapping[str, str]) -> Iterator[str]:
    pods, metadata = job.spec.pods, job.metadata
    named = {
        "metadata.labels": metadata.labels,
        "metadata.annotations": metadata.annotations,
        "spec.pods.labels": pods.labels,
        "spec.pods.annotations": pods.annotations,
    }
    for path, keys in named.items():
        for key in keys:
            if key.startswith(RESERVED):
                yield f"{path}: {key} is reserved for KubeRay and the operator"
    if kuberay_labels and kuberay_labels.items() <= (metadata.labels | pods.labels).items():
        labels = ", ".join(f"{key}: {value}" for key, value in kuberay_labels.items())
        yield f"metadata.labels, spec.pods.labels: {labels} mark KubeRay's own pods, which may connect to all jobs"


def _pool_problems(job: TrainJob, pool: NodePool, settings: Settings) -> Iterator[str]:
    """Fields that would override the pool's fields, or use a pool of other namespaces."""
    pods, namespace, name = job.spec.pods, job.metadata.namespace, job.spec.workers.node_pool
    if not pool.admits(namespace):
        yield f"spec.workers.nodePool: the pool {name} is not available to TrainJobs in the namespace {namespace}"
    for key, value in pods.node_selector.items():
        if pool.node_selector.get(key, value) != value:
            yield f"spec.pods.nodeSelector: {key} is {pool.node_selector[key]} in the pool {name}"
    for kind in (pods.affinity or {}).keys() & (pool.affinity or {}).keys():
        yield f"spec.pods.affinity: the pool {name} sets its own {kind}"
    scheduler = pool.pod.get("schedulerName")
    if scheduler is not None and pods.scheduler_name not in (None, scheduler):
        yield f"spec.pods.schedulerName: the pool {name} has the scheduler {scheduler}"
    for path, annotations in {"metadata": job.metadata.annotations, "spec.pods": pods.annotations}.items():
        for key in annotations.keys() & pool.annotations.keys():
            if annotations[key] != pool.annotations[key]:
                yield f"{path}.annotations: the pool {name} sets its own {key}"
    taken = {volume["name"] for volume in pool.pod.get("volumes", [])}
    for volume in pods.volumes:
        if volume.get("name") in taken:
            yield f"spec.pods.volumes: the pool {name} has its own volume {volume['name']}"
    for other, closed in settings.node_pools.items():
        taints = {taint.get("key") for taint in closed.tolerations}
        tolerated = {taint.get("key") for taint in pods.tolerations}
        if not closed.admits(namespace) and taints and tolerated & {*taints, None, ""}:
            yield f"spec.pods.tolerations: the pool {other} is not available to TrainJobs in the namespace {namespace}"


def _authentication_problems(job: TrainJob) -> Iterator[str]:
    for variable in job.spec.pods.env:
        if str(variable.get("name")).startswith(RAY_AUTHENTICATION):
            yield f"spec.pods.env: {variable['name']} is set by KubeRay"


def _pod_security_problems(job: TrainJob) -> Iterator[str]:
    """Fields of `spec.pods` that the Pod Security level `restricted` forbids."""
    pods = job.spec.pods
    for volume in pods.volumes:
        for kind in volume.keys() - VOLUMES - {"name"}:
            yield f"spec.pods.volumes: {volume.get('name')} is of the kind {kind}"
    for path, annotations in {"metadata": job.metadata.annotations, "spec.pods": pods.annotations}.items():
        for key, profile in annotations.items():
            if key.startswith(APP_ARMOR) and profile and not profile.startswith(("runtime/default", "localhost/")):
                yield f"{path}.annotations: {key} is {profile}"
    for problem in _security_context_problems(pods.security_context or {}):
        yield f"spec.pods.securityContext: {problem}"


def _security_context_problems(context: Mapping[str, Any]) -> Iterator[str]:
    if context.get("runAsNonRoot", True) is not True or context.get("runAsUser") == 0:
        yield "pods must not run as root"
    for profile in ("seccompProfile", "appArmorProfile"):
        kind = (context.get(profile) or {"type": CONFINED[0]}).get("type")
        if kind not in CONFINED:
            yield f"{profile} is {kind}"
    se_linux = context.get("seLinuxOptions") or {}
    if se_linux.get("type", "") not in SE_LINUX_TYPES or se_linux.get("user") or se_linux.get("role"):
        yield "seLinuxOptions may only set a container type"
    for sysctl in context.get("sysctls") or ():
        if sysctl.get("name") not in SYSCTLS:
            yield f"the sysctl {sysctl.get('name')} is not a safe sysctl"
    if (context.get("windowsOptions") or {}).get("hostProcess"):
        yield "windowsOptions.hostProcess is true"
