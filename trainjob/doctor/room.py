"""Whether a cluster has room for a TrainJob now: its nodes, the namespace's quotas and its queue."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainjob.api import TrainJob
from trainjob.api.cluster import KubernetesObject
from trainjob.api.numbers import amount_of
from trainjob.api.resources import NODES, PODS, Resource
from trainjob.cluster.connection import Connection
from trainjob.cluster.errors import NotPermitted
from trainjob.doctor.findings import Finding, ok, unknown, wrong
from trainjob.doctor.installation import installation
from trainjob.doctor.nodes import allocatable, is_usable, taints_of, tolerates
from trainjob.doctor.quotas import queue, quota_findings, shown_all
from trainjob_operator.errors import RayJobError
from trainjob_operator.render import node_pool, render, with_storage
from trainjob_operator.settings import NodePool, Settings

QUOTAS = Resource("/api/v1", "resourcequotas")
_PAGE = 500
_MIB = 2**20


@dataclass(frozen=True)
class Room:
    """The capacity that a cluster has for a TrainJob."""

    findings: Sequence[Finding]
    gpu_memory: int | None = None
    """Bytes of the smallest GPU that its workers may get, from the nodes' labels."""


@dataclass(frozen=True)
class PodGroup:
    """Equal pods."""

    count: int
    spec: KubernetesObject

    @property
    def requests(self) -> Mapping[str, float]:
        """The requests of one pod."""
        return amounts(self.spec, "requests")


def room_for(connection: Connection, job: TrainJob) -> Room:
    """The room for `job` in the connection's namespace. Raises ClusterError."""
    found = installation(connection)
    pool_name = job.spec.workers.node_pool
    findings = [unknown("settings", f"{found.problem or 'there is no operator'}; its defaults are assumed")]
    settings = found.settings
    if settings is None:
        settings = Settings(image="unknown", node_pools={} if pool_name is None else {pool_name: NodePool()})
    else:
        findings.clear()
    metadata = job.metadata.model_copy(update={"namespace": connection.namespace, "uid": job.metadata.uid or ""})
    job = with_storage(job.model_copy(update={"metadata": metadata}), None, settings)
    try:
        pool, ray_job = node_pool(job, settings), render(job, settings)
    except RayJobError as error:
        return Room([*findings, wrong("TrainJob", f"{error.reason}: {error}", "")])
    cluster = ray_job["spec"]["rayClusterSpec"]
    [group] = cluster["workerGroupSpecs"]
    workers = PodGroup(group["replicas"], group["template"]["spec"])
    head = PodGroup(1, cluster["headGroupSpec"]["template"]["spec"])
    submitter = PodGroup(1, ray_job["spec"]["submitterPodTemplate"]["spec"])
    memory = None
    try:
        nodes = [node for node in _all(connection, NODES, None) if is_usable(node)]
    except NotPermitted as error:
        findings.append(unknown("nodes", str(error)))
    else:
        open_to_workers = [node for node in nodes if _admits(node, workers.spec)]
        memory = _gpu_memory(open_to_workers, pool.gpu_resource) if job.spec.workers.gpus else None
        findings += _nodes(connection, nodes, workers, head, pool.gpu_resource)
    try:
        quotas = list(_all(connection, QUOTAS, connection.namespace))
    except NotPermitted as error:
        findings.append(unknown("quotas", str(error)))
    else:
        findings += quota_findings(quotas, _needs([workers, head, submitter]))
    findings += queue(connection, job, _total([workers, head], "requests"))
    return Room(findings, memory)


def free_amounts(node: KubernetesObject, pods: Sequence[KubernetesObject]) -> dict[str, float]:
    """The capacity of a node that these pods leave."""
    free = {name: amount_of(str(amount)) for name, amount in allocatable(node).items()}
    for pod in pods:
        for name, amount in amounts(pod["spec"], "requests").items():
            free[name] = free.get(name, 0) - amount
    return free


def most_pods(free: Mapping[str, float], requests: Mapping[str, float]) -> int:
    """The number of pods with these requests that fit."""
    return max(0, min(int(free.get(name, 0) / amount + 1e-9) for name, amount in requests.items() if amount))


def _nodes(
    connection: Connection, nodes: Sequence[KubernetesObject], workers: PodGroup, head: PodGroup, gpu_resource: str
) -> Iterator[Finding]:
    try:
        live = "status.phase!=Succeeded,status.phase!=Failed"
        pods = [pod for pod in _all(connection, PODS, None, fieldSelector=live) if pod["spec"].get("nodeName")]
    except NotPermitted as error:
        yield unknown("nodes", f"how much of them is free is unknown: {error}")
        pods = []
    by_node: dict[str, list[KubernetesObject]] = {}
    for pod in pods:
        by_node.setdefault(pod["spec"]["nodeName"], []).append(pod)
    for name, wanted in (("workers", workers), ("head", head)):
        usable = [node for node in nodes if _admits(node, wanted.spec)]
        free = [free_amounts(node, by_node.get(node["metadata"]["name"], ())) for node in usable]
        fit = sum(most_pods(each, wanted.requests) for each in free)
        asks = f"{wanted.count} pod{'s' if wanted.count > 1 else ''} of {shown_all(wanted.requests)}"
        where = f"{len(usable)} node{'s' if len(usable) != 1 else ''} take{'s' if len(usable) == 1 else ''} them"
        if gpu_resource in wanted.requests:
            total = sum(amount_of(str(allocatable(node).get(gpu_resource, 0))) for node in usable)
            where += f", with {sum(each.get(gpu_resource, 0) for each in free):g} of {total:g} {gpu_resource} free"
        if not usable:
            yield unknown(name, f"{asks}: no node takes them now; an autoscaler may add one", "trainjob doctor")
        elif fit < wanted.count:
            yield wrong(name, f"{asks}: room for {fit} now; {where}", "")
        else:
            yield ok(name, f"{asks}: fit now; {where}")


def _admits(node: KubernetesObject, pod: Mapping[str, Any]) -> bool:
    """Whether a node has the pod's labels and only taints that it tolerates. Affinity is not considered."""
    labels = node["metadata"].get("labels") or {}
    tolerations = pod.get("tolerations") or ()
    is_tolerated = all(any(tolerates(each, taint) for each in tolerations) for taint in taints_of(node))
    return is_tolerated and (pod.get("nodeSelector") or {}).items() <= labels.items()


def _gpu_memory(nodes: Sequence[KubernetesObject], gpu_resource: str) -> int | None:
    """Bytes, from the labels of NVIDIA's (in MiB) and AMD's device plugins."""
    labels = [node["metadata"].get("labels") or {} for node in nodes if gpu_resource in allocatable(node)]
    found = [int(each[f"{gpu_resource}.memory"]) * _MIB for each in labels if f"{gpu_resource}.memory" in each]
    found += [round(amount_of(each["amd.com/gpu.vram"])) for each in labels if "amd.com/gpu.vram" in each]
    return min(found, default=None)


def _needs(pods: Sequence[PodGroup]) -> dict[str, float]:
    """The share of a quota that these pods take, by the quota's names."""
    requests, limits = _total(pods, "requests"), _total(pods, "limits")
    return {
        "pods": sum(each.count for each in pods),
        "cpu": requests["cpu"],
        "memory": requests["memory"],
        "limits.cpu": 0,
        **{f"requests.{name}": amount for name, amount in requests.items()},
        **{f"limits.{name}": amount for name, amount in limits.items()},
    }


def _total(pods: Sequence[PodGroup], kind: str) -> dict[str, float]:
    total: dict[str, float] = defaultdict(float)
    for each in pods:
        for name, amount in amounts(each.spec, kind).items():
            total[name] += each.count * amount
    return total


def amounts(spec: Mapping[str, Any], kind: str) -> dict[str, float]:
    """The `requests` or `limits` of a pod's containers."""
    total: dict[str, float] = defaultdict(float)
    for container in spec["containers"]:
        for name, amount in ((container.get("resources") or {}).get(kind) or {}).items():
            total[name] += amount_of(str(amount))
    return total


def _all(connection: Connection, resource: Resource, namespace: str | None, **query: str) -> Iterator[KubernetesObject]:
    query["limit"] = str(_PAGE)
    while True:
        answer = connection.request("GET", resource, namespace, query=query)
        yield from answer.get("items") or ()
        if not (token := answer["metadata"].get("continue")):
            return
        query["continue"] = token
