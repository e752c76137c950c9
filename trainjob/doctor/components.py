"""The API server, the TrainJob type, the operator and KubeRay."""

import math
import re
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from trainjob.api.cluster import KubernetesObject
from trainjob.api.names import GROUP, KIND, VERSION
from trainjob.api.resources import LEASES, Resource
from trainjob.cluster.connection import Connection, NotFound
from trainjob.cluster.errors import ClusterError, NotPermitted
from trainjob.doctor.findings import Finding, ok, unknown, wrong
from trainjob.doctor.installation import DEPLOYMENTS, Subject
from trainjob_operator.settings import NetworkSettings

OLDEST_KUBERNETES = (1, 30)
OLDEST_KUBERAY = (1, 5, 1)
"""KubeRay's first version with Ray's tokens."""
_LEASE = "trainjob-operator"
_RENEWED_SECONDS = 60
_RENEWAL_SECONDS = 5.0
"""The leader renews the Lease every two seconds."""
_INSTALL = (
    "helm install trainjob oci://REGISTRY/charts/trainjob -n trainjob-system --create-namespace --set registry=REGISTRY"
)
_INSTALL_KUBERAY = "helm install kuberay-operator kuberay/kuberay-operator -n kuberay-system --create-namespace"
_MAX_FIELDS = 5


def server(connection: Connection) -> Finding:
    answer = connection.request("GET", Resource("", "version"), None)
    found = f"Kubernetes {answer['gitVersion']} at {connection.url}"
    if numbers(answer["gitVersion"]) < OLDEST_KUBERNETES:
        return wrong("server", f"{found}: trainjob needs 1.30 or newer", "upgrade the cluster")
    return ok("server", found)


def namespace(subject: Subject) -> Iterator[Finding]:
    name = subject.namespace
    try:
        found = subject.connection.request("GET", Resource("/api/v1", "namespaces"), None, name)
    except NotFound:
        yield wrong("namespace", f"there is no namespace {name}", f"kubectl create namespace {name}")
        return
    if "deletionTimestamp" in found["metadata"]:
        yield wrong("namespace", f"{name} is being deleted", "choose another one: -n NAMESPACE")
        return
    level = (found["metadata"].get("labels") or {}).get("pod-security.kubernetes.io/enforce")
    security = f"Pod Security enforces {level}, which the pods meet" if level else "without a level of Pod Security"
    yield ok("namespace", f"{name}, {security}")


def trainjobs(subject: Subject) -> Iterator[Finding]:
    """The CRD: whether it is there, and has all the fields that this version knows."""
    from trainjob.crd import crd

    name, types = "TrainJob type", Resource("/apis", GROUP)
    try:
        served = [each["version"] for each in subject.connection.request("GET", types, None)["versions"]]
    except NotFound:
        yield wrong(name, "the cluster does not know TrainJobs", _INSTALL)
        return
    if VERSION not in served:
        remedy = "install the trainjob of the operator's version: pip install trainjob==VERSION"
        yield wrong(name, f"the cluster has {GROUP}/{', '.join(served)}, this trainjob knows {VERSION}", remedy)
        return
    schemas = subject.connection.request("GET", Resource(f"/openapi/v3/apis/{GROUP}", VERSION), None)
    found = next(each for each in schemas["components"]["schemas"].values() if _is_trainjob(each))
    known_schema = crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    missing = list(missing_fields(known_schema["properties"]["spec"], found["properties"].get("spec", {}), "spec"))
    if missing:
        more = f" and {len(missing) - _MAX_FIELDS} more" if len(missing) > _MAX_FIELDS else ""
        message = f"the CRD is of another version: it lacks {', '.join(missing[:_MAX_FIELDS])}{more}"
        upgrade = "upgrade the chart with its CRD: helm upgrade RELEASE CHART --reuse-values"
        yield wrong(name, message, upgrade)
    else:
        yield ok(name, f"{GROUP}/{VERSION}, with all fields that trainjob {version('trainjob')} knows")


def operator(subject: Subject) -> Iterator[Finding]:
    name, found = "operator", subject.installation
    if found.deployment is None:
        if found.problem:
            yield unknown(name, found.problem)
        else:
            yield wrong(name, "it is not installed", _INSTALL)
        return
    metadata = found.deployment["metadata"]
    where = f"deployment/{metadata['name']} -n {found.namespace}"
    its_version = (metadata.get("labels") or {}).get("app.kubernetes.io/version", "of an unknown version")
    if not (found.deployment.get("status") or {}).get("readyReplicas"):
        yield wrong(name, f"{its_version}: no replica is ready", f"kubectl logs {where}")
        return
    if problem := _lease_problem(subject):
        yield wrong(name, f"{its_version}: {problem}", f"kubectl logs {where}")
        return
    if found.settings is None:
        yield unknown("settings", found.problem)
    elif not found.watches(subject.namespace):
        remedy = f"add {subject.namespace} to settings.namespaces of the chart: helm upgrade … --reuse-values"
        yield wrong(name, f"it does not watch the namespace {subject.namespace}", remedy)
        return
    known = version("trainjob")
    if its_version != known:
        yield unknown(
            "versions",
            f"the operator is {its_version}, this trainjob {known}",
            f"pip install trainjob=={its_version}",
        )
    yield ok(name, f"{its_version}, ready in the namespace {found.namespace}")


def kuberay(subject: Subject) -> Iterator[Finding]:
    name, settings = "KubeRay", subject.installation.settings
    network = settings.network if settings is not None else NetworkSettings()
    try:
        served = subject.connection.request("GET", Resource("/apis/ray.io", "v1"), None)["resources"]
    except NotFound:
        served = []
    lacks = {"rayjobs", "rayclusters"} - {each["name"] for each in served}
    if lacks:
        yield wrong(name, f"the cluster does not know {' and '.join(sorted(lacks))}.ray.io", _INSTALL_KUBERAY)
        return
    labels = ",".join(f"{key}={value}" for key, value in network.kuberay_labels.items())
    try:
        found = subject.connection.request("GET", DEPLOYMENTS, None, query={"labelSelector": labels}).get("items") or []
    except NotPermitted as error:
        yield unknown(name, f"its types are installed; {error}")
        return
    if not found:
        message = (
            f"its types are installed, but no Deployment has the labels {labels}; does it run outside of the cluster?"
        )
        yield unknown(name, message, _INSTALL_KUBERAY)
        return
    where, image = found[0]["metadata"], found[0]["spec"]["template"]["spec"]["containers"][0]["image"]
    if not any((each.get("status") or {}).get("readyReplicas") for each in found):
        yield wrong(
            name, f"{image}: no replica is ready", f"kubectl logs deployment/{where['name']} -n {where['namespace']}"
        )
    elif network.ray_tokens and () < numbers(image.rpartition(":")[2]) < OLDEST_KUBERAY:
        yield wrong(
            name, f"{image}: Ray's tokens need KubeRay 1.5.1", _INSTALL_KUBERAY.replace("install", "upgrade", 1)
        )
    else:
        yield ok(name, f"{image}, ready in the namespace {where['namespace']}")


def _is_trainjob(schema: Mapping[str, Any]) -> bool:
    return any(each["kind"] == KIND for each in schema.get("x-kubernetes-group-version-kind", ()))


def missing_fields(own: Mapping[str, Any], other: Mapping[str, Any], path: str) -> Iterator[str]:
    """The paths of the fields that only the first of two schemas has."""
    for name, schema in (own.get("properties") or {}).items():
        found = (other.get("properties") or {}).get(name)
        if found is None:
            yield f"{path}.{name}"
        else:
            yield from missing_fields(schema, found, f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        if isinstance(own.get(inner), Mapping) and isinstance(other.get(inner), Mapping):
            yield from missing_fields(own[inner], other[inner], f"{path}[]")


def numbers(text: str) -> tuple[int, ...]:
    """The version in a text such as `v1.30.2-eks-1`; empty if there is none."""
    found = re.match(r"v?(\d+(?:\.\d+)+)", text)
    return tuple(map(int, found[1].split("."))) if found else ()


def _lease_problem(subject: Subject) -> str:
    """Why no replica leads; empty if one does, or if this cannot be seen."""

    def lease() -> KubernetesObject:
        return subject.connection.request("GET", LEASES, subject.installation.namespace, _LEASE)

    try:
        first = lease()
        age = _age(first)
        if age > _RENEWED_SECONDS:
            time.sleep(_RENEWAL_SECONDS)  # this machine's clock may be wrong
            if lease()["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]:
                since = f"last renewed {age / 60:.0f} minutes ago" if age < math.inf else "held by none"
                return f"no replica works: the Lease {_LEASE} is {since}"
    except NotFound:
        return f"no replica works: there is no Lease {_LEASE}"
    except ClusterError:
        pass
    return ""


def _age(lease: KubernetesObject) -> float:
    """Seconds since the Lease was renewed; infinite if no replica holds it."""
    spec = lease.get("spec") or {}
    if "renewTime" not in spec or not spec.get("holderIdentity"):
        return math.inf
    return (datetime.now(UTC) - datetime.fromisoformat(spec["renewTime"])).total_seconds()
