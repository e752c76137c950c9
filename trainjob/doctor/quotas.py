"""Checks whether a namespace's ResourceQuotas and its Kueue queue leave enough for a TrainJob."""

from collections.abc import Iterator, Mapping, Sequence

from trainjob.api import TrainJob
from trainjob.api.cluster import KubernetesObject
from trainjob.api.numbers import amount_of
from trainjob.api.resources import Resource
from trainjob.cluster.connection import Connection, NotFound
from trainjob.cluster.errors import NotPermitted
from trainjob.doctor.findings import Finding, ok, unknown, wrong
from trainjob_operator.names import QUEUE_LABEL

LOCAL_QUEUES = Resource("/apis/kueue.x-k8s.io/v1beta2", "localqueues")
CLUSTER_QUEUES = Resource("/apis/kueue.x-k8s.io/v1beta2", "clusterqueues")


def quota_findings(quotas: Sequence[KubernetesObject], needs: Mapping[str, float]) -> Iterator[Finding]:
    """Whether each ResourceQuota leaves enough for the pods, by the quota's names such as `requests.nvidia.com/gpu`."""
    for quota in quotas:
        check, spec = f"quota {quota['metadata']['name']}", quota["spec"]
        status = quota.get("status") or {}
        texts, is_short = list[str](), False
        for name, text in (spec.get("hard") or {}).items():
            need = needs.get(name)
            if need is None:
                continue
            hard, used = amount_of(str(text)), amount_of(str((status.get("used") or {}).get(name, 0)))
            if name == "limits.cpu" and not need:
                yield wrong(
                    check, "it limits limits.cpu, and the pods have no CPU limit", "set spec.pods.cpuLimits: true"
                )
                continue
            is_short = is_short or need > hard - used
            texts.append(f"{name} {plain(name, used)} of {plain(name, hard)} used, needs {plain(name, need)}")
        if not texts:
            continue
        if spec.get("scopes") or spec.get("scopeSelector"):
            yield unknown(check, f"{'; '.join(texts)}; it is for some pods only")
        elif is_short:
            yield wrong(check, "; ".join(texts), "")
        else:
            yield ok(check, "; ".join(texts))


def queue(connection: Connection, job: TrainJob, requests: Mapping[str, float]) -> Iterator[Finding]:
    """Whether the job's queue has enough for pods with these requests in total."""
    name = job.metadata.labels.get(QUEUE_LABEL)
    if name is None:
        return
    check = f"queue {name}"
    try:
        local = connection.request("GET", LOCAL_QUEUES, connection.namespace, name)
    except NotFound:
        known = "kubectl get localqueues" + f" -n {connection.namespace}"
        yield wrong(check, f"there is no LocalQueue {name} in the namespace {connection.namespace}", known)
        return
    except NotPermitted as error:
        yield unknown(check, str(error))
        return
    status = local.get("status") or {}
    waiting = f"{status.get('admittedWorkloads', 0)} jobs run, {status.get('pendingWorkloads', 0)} wait"
    try:
        cluster_queue = connection.request("GET", CLUSTER_QUEUES, None, local["spec"]["clusterQueue"])
    except (NotFound, NotPermitted) as error:
        yield unknown(check, f"{waiting}; its quota is unknown: {error}")
        return
    yield queue_finding(check, waiting, cluster_queue, requests)


def queue_finding(check: str, waiting: str, cluster_queue: KubernetesObject, requests: Mapping[str, float]) -> Finding:
    """Whether a ClusterQueue's own quota suffices now."""
    status, spec = cluster_queue.get("status") or {}, cluster_queue["spec"]
    used = {
        (flavor["name"], each["name"]): amount_of(str(each.get("total", 0)))
        for flavor in status.get("flavorsReservation") or ()
        for each in flavor.get("resources") or ()
    }
    texts, short, too_small = [waiting], set[str](), set[str]()
    for group in spec.get("resourceGroups") or ():
        asked = [name for name in group["coveredResources"] if requests.get(name)]
        fits = could_fit = not asked
        for flavor in group["flavors"]:
            quotas = {each["name"]: amount_of(str(each["nominalQuota"])) for each in flavor["resources"]}
            left = {name: quotas.get(name, 0) - used.get((flavor["name"], name), 0) for name in asked}
            fits = fits or all(requests[name] <= left[name] for name in asked)
            could_fit = could_fit or all(requests[name] <= quotas.get(name, 0) for name in asked)
            amounts = [
                f"{name} {plain(name, quotas.get(name, 0) - left[name])} of {plain(name, quotas.get(name, 0))}"
                for name in asked
            ]
            texts.append(f"{flavor['name']}: {', '.join(amounts)} reserved")
        short |= set() if fits else {*asked}
        too_small |= set() if could_fit else {*asked}
    message = f"{'; '.join(texts)}; needs {shown_all(requests)}"
    if spec.get("cohortName") and short:
        return unknown(check, f"{message}: more than its own quota has free; it may borrow from {spec['cohortName']}")
    if too_small:
        return wrong(
            check,
            f"{message}: more than its quota, so the job would wait for ever",
            "ask for less, or choose another queue",
        )
    return wrong(check, f"{message}: the job would wait", "") if short else ok(check, message)


def shown_all(amounts: Mapping[str, float]) -> str:
    """Amounts by resource for people, such as `3 cpu, 16Gi memory`."""
    return ", ".join(f"{plain(name, amount)} {name}" for name, amount in amounts.items())


def plain(name: str, amount: float) -> str:
    """An amount of a resource, without its name."""
    if "memory" not in name and "storage" not in name:
        return f"{round(amount, 3):g}"
    units = ["", "Ki", "Mi", "Gi", "Ti"]
    while abs(amount) >= 1024 and len(units) > 1:
        amount, units = amount / 1024, units[1:]
    return f"{amount:.4g}{units[0]}"
