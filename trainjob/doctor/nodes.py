"""The nodes, their GPUs, and the operator's node pools."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainjob.api.cluster import KubernetesObject
from trainjob.api.numbers import amount_of
from trainjob.api.resources import NODES
from trainjob.cluster.errors import NotPermitted
from trainjob.doctor.findings import Finding, ok, unknown, wrong
from trainjob.doctor.installation import Subject
from trainjob_operator.settings import NodePool

_GPUS = ("nvidia.com/", "amd.com/gpu")
_REPELLING = ("NoSchedule", "NoExecute")


def nodes(subject: Subject) -> Iterator[Finding]:
    try:
        found = subject.connection.request("GET", NODES, None).get("items") or []
    except NotPermitted as error:
        yield unknown("nodes", str(error))
        return
    settings = subject.installation.settings
    pools = settings.node_pools if settings is not None else {}
    yield from node_findings(found, {name: pool for name, pool in pools.items() if pool.admits(subject.namespace)})
    asked = subject.job.spec.workers.node_pool
    if settings is not None and asked is not None and asked not in pools:
        known = ", ".join(sorted(pools)) or "none"
        yield wrong(
            f"node pool {asked}", f"there is no such pool; known pools: {known}", "change spec.workers.nodePool"
        )


def node_findings(found: Sequence[KubernetesObject], pools: Mapping[str, NodePool]) -> Iterator[Finding]:
    """The nodes and pools, from the cluster's objects."""
    usable = [node for node in found if is_usable(node)]
    gpus = _gpus(usable)
    message = f"{len(usable)} of {len(found)} ready; {gpus or 'no GPUs'}"
    if not usable:
        yield wrong("nodes", message, "kubectl describe nodes")
    else:
        yield ok("nodes", message)
    for name, pool in pools.items():
        yield _pool(f"node pool {name}", pool, usable)


def _pool(check: str, pool: NodePool, usable: Sequence[KubernetesObject]) -> Finding:
    labels = ",".join(f"{key}={value}" for key, value in pool.node_selector.items())
    of_pool = [node for node in usable if pool.node_selector.items() <= (node["metadata"].get("labels") or {}).items()]
    if not of_pool:
        return unknown(
            check, f"no node has its labels {labels} now; an autoscaler may add one", f"kubectl get nodes -l {labels}"
        )
    open_to_pods = [node for node in of_pool if not _repelling(node, pool)]
    if not open_to_pods:
        taints = ", ".join(dict.fromkeys(taint for node in of_pool for taint in _repelling(node, pool)))
        where = f"settings.nodePools.{check.removeprefix('node pool ')}.tolerations"
        return wrong(
            check,
            f"its nodes have taints that it does not tolerate: {taints}",
            f"add them to {where} of the chart, and upgrade it",
        )
    if not _amount(open_to_pods, pool.gpu_resource):
        count = f"{len(open_to_pods)} node{'s' if len(open_to_pods) > 1 else ''}"
        return unknown(
            check, f"{count} without {pool.gpu_resource}", "install the GPUs' device plugin, if they have GPUs"
        )
    return ok(check, f"{len(open_to_pods)} ready; {_gpus(open_to_pods)}")


def is_usable(node: KubernetesObject) -> bool:
    """Whether a node is ready and takes new pods."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    is_ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return is_ready and not (node.get("spec") or {}).get("unschedulable")


def _gpus(found: Sequence[KubernetesObject]) -> str:
    """The allocatable GPUs by resource, and the taints of their nodes."""
    names = dict.fromkeys(name for node in found for name in allocatable(node) if name.startswith(_GPUS))
    texts: list[str] = []
    for name in names:
        having = [node for node in found if _amount([node], name)]
        if not having:
            continue
        taints = Counter(taint["key"] for node in having for taint in taints_of(node))
        tainted = f" (taints: {', '.join(taints)})" if taints else ""
        texts.append(f"{_amount(found, name)} {name} on {len(having)} node{'s' if len(having) > 1 else ''}{tainted}")
    return ", ".join(texts)


def allocatable(node: KubernetesObject) -> dict[str, Any]:
    return (node.get("status") or {}).get("allocatable") or {}


def _amount(found: Sequence[KubernetesObject], resource: str) -> int:
    return sum(int(amount_of(str(allocatable(node).get(resource, 0)))) for node in found)


def taints_of(node: KubernetesObject) -> list[dict[str, str]]:
    """The taints that keep pods away."""
    return [taint for taint in (node.get("spec") or {}).get("taints") or () if taint["effect"] in _REPELLING]


def _repelling(node: KubernetesObject, pool: NodePool) -> list[str]:
    """The node's taints that keep the pool's pods away."""
    return [
        f"{taint['key']}:{taint['effect']}"
        for taint in taints_of(node)
        if not any(tolerates(each, taint) for each in pool.tolerations)
    ]


def tolerates(toleration: Mapping[str, Any], taint: Mapping[str, str]) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    return toleration.get("key") == taint["key"] and (toleration.get("value") or "") == taint.get("value", "")
