"""Kueue, where it is installed."""

from collections.abc import Iterator

import yaml

from trainjob.api.resources import Resource
from trainjob.cluster.connection import NotFound
from trainjob.cluster.errors import NotPermitted
from trainjob.doctor.findings import Finding, ok, unknown, wrong
from trainjob.doctor.installation import CONFIG_MAPS, Subject
from trainjob_operator.names import QUEUE_LABEL

_KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
_INTEGRATION = "ray.io/rayjob"
_NAMESPACE, _CONFIG = "kueue-system", "kueue-manager-config"


def kueue(subject: Subject) -> Iterator[Finding]:
    asked = subject.job.metadata.labels.get(QUEUE_LABEL)
    try:
        subject.connection.request("GET", Resource("/apis", "kueue.x-k8s.io"), None)
    except NotFound:
        if asked is None:
            yield unknown("Kueue", "not installed; only queues need it")
        else:
            yield wrong(
                "Kueue", f"not installed, and the job names the queue {asked}", f"remove the label {QUEUE_LABEL}"
            )
        return
    yield from _queues(subject, asked)
    try:
        config = subject.connection.request("GET", CONFIG_MAPS, _NAMESPACE, _CONFIG)
    except (NotFound, NotPermitted) as error:
        yield unknown("Kueue", f"its configuration cannot be read: {error}")
        return
    yield integration("\n---\n".join(config.get("data", {}).values()))


def _queues(subject: Subject, asked: str | None) -> Iterator[Finding]:
    where = f"-n {subject.namespace}"
    try:
        found = subject.connection.request("GET", Resource(_KUEUE, "localqueues"), subject.namespace).get("items") or []
    except NotFound:
        yield wrong("queues", "Kueue does not serve v1beta2", "upgrade Kueue to 0.15 or newer")
        return
    queues = {queue["metadata"]["name"]: queue for queue in found}
    if asked is not None and asked not in queues:
        known = ", ".join(queues) or "none"
        remedy = f"kubectl get localqueues {where}"
        yield wrong("queues", f"there is no LocalQueue {asked} in {subject.namespace}; there are: {known}", remedy)
        return
    for name in [asked] if asked is not None else queues:
        conditions = (queues[name].get("status") or {}).get("conditions") or ()
        active = next((each for each in conditions if each["type"] == "Active"), {})
        if active.get("status") != "True":
            message = active.get("message") or "Kueue has not seen it"
            yield wrong("queues", f"{name} is not active: {message}", f"kubectl describe localqueue {name} {where}")
        else:
            yield ok("queues", f"{name} is active")
    if not queues:
        yield unknown("queues", f"there is no LocalQueue in the namespace {subject.namespace}")


def integration(config: str) -> Finding:
    """Whether Kueue's configuration has it manage RayJobs."""
    try:
        documents = [each for each in yaml.safe_load_all(config) if isinstance(each, dict)]
    except yaml.YAMLError as error:
        return unknown("Kueue", f"its configuration is not YAML: {error}")
    if any(_INTEGRATION in ((each.get("integrations") or {}).get("frameworks") or ()) for each in documents):
        return ok("Kueue", "manages RayJobs")
    remedy = f"add it to integrations.frameworks: kubectl edit configmap {_CONFIG} -n {_NAMESPACE}"
    return wrong("Kueue", f"its integration {_INTEGRATION} is off, so queues do not hold TrainJobs", remedy)
