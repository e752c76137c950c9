"""Why pods are not running: a pure function of the cluster's objects."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trainjob.api.trainjob_status import Waiting

STARTING_REASONS = ("PodInitializing", "ContainerCreating")
"""Waiting reasons of containers that are starting normally."""

EXPLAINING_EVENTS = ("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "FailedCreate")
"""Reasons of Events that explain why a pod does not start when its status does not."""

MAX_REASONS = 10


def diagnose(
    pods: Iterable[Mapping[str, Any]],
    cluster: Mapping[str, Any] | None,
    events: Iterable[Mapping[str, Any]],
    refusals: Iterable[tuple[str, str]] = (),
) -> list[Waiting]:
    """The reasons why pods wait, by number of pods in descending order, each with its most frequent message.

    `cluster` is the RayCluster's status, `events` are the pods' Events, and `refusals` are reasons and messages about
    objects that could not be created for the job.
    """
    explaining = (event for event in events if event.get("reason") in EXPLAINING_EVENTS)
    event_of = {event["involvedObject"].get("uid"): event for event in explaining}
    messages: dict[str, Counter[str]] = defaultdict(Counter)
    for pod in pods:
        found = _node_lost(pod)
        if found is None and "deletionTimestamp" not in pod["metadata"]:
            found = _reason_from_status(pod) or _reason_from_event(pod, event_of)
        if found is not None:
            messages[found[0]][found[1]] += 1
    for condition in (cluster or {}).get("conditions", []):
        if condition["type"] == "ReplicaFailure" and condition["status"] == "True":
            message = condition.get("message", "")
            messages[_refusal_reason(message, condition.get("reason", "FailedCreate"))][message] += 0
    for reason, message in refusals:
        messages[_refusal_reason(message, reason)][message] += 0
    waiting = [
        Waiting(reason=reason, pods=found.total(), message=min(found, key=lambda text: (-found[text], text))[:1024])
        for reason, found in messages.items()
    ]
    return sorted(waiting, key=lambda item: (-item.pods, item.reason))[:MAX_REASONS]


def waiting_message(waiting: Waiting) -> str:
    """The message of a waiting reason, with the number of pods if there are any."""
    pods = waiting.pods
    return f"{pods} pod{'s' if pods != 1 else ''} waiting: {waiting.message}" if pods else waiting.message


def _node_lost(pod: Mapping[str, Any]) -> tuple[str, str] | None:
    """Reason and message for a Ray pod whose node has stopped responding. KubeRay creates a replacement only once this
    pod is gone, which only the node itself can confirm, or whoever removes the node."""
    metadata, conditions = pod["metadata"], {each["type"]: each for each in pod.get("status", {}).get("conditions", [])}
    ready, containers = conditions.get("Ready", {}), conditions.get("ContainersReady", {})
    # The control plane marks such a pod as not ready, without a reason, while its containers still count as ready.
    is_lost = ready.get("status") == "False" and "reason" not in ready and containers.get("status") == "True"
    if not is_lost or "ray.io/node-type" not in metadata.get("labels", {}):
        return None
    node = pod["spec"].get("nodeName")
    message = f"node {node} of pod {metadata['name']} does not respond"
    return "NodeLost", f"{message}; if it does not come back, take it out of service to have the pod created elsewhere"


def _reason_from_status(pod: Mapping[str, Any]) -> tuple[str, str] | None:
    status = pod.get("status", {})
    if status.get("phase") in ("Succeeded", "Failed"):
        return None
    for condition in status.get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return condition.get("reason", "Unschedulable"), condition.get("message", "")
    for container in _containers(status):
        waiting = container.get("state", {}).get("waiting")
        if waiting is not None and waiting.get("reason") not in (None, *STARTING_REASONS):
            return waiting["reason"], _container_message(container, waiting)
    return None


def _containers(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from status.get("initContainerStatuses", [])
    yield from status.get("containerStatuses", [])


def _container_message(container: Mapping[str, Any], waiting: Mapping[str, Any]) -> str:
    """The container's waiting message and how it last ended, which the message of a crash loop does not include."""
    message = f"container {container['name']}: {waiting.get('message', '')}"
    ended = container.get("lastState", {}).get("terminated")
    if ended is not None:
        words = [ended.get("reason", "no reason given"), *ended.get("message", "").strip().splitlines()[-1:]]
        message += f" (last exit code {ended.get('exitCode')}, {': '.join(words)})"
    return message


def _reason_from_event(pod: Mapping[str, Any], event_of: Mapping[str, Mapping[str, Any]]) -> tuple[str, str] | None:
    event = event_of.get(pod["metadata"]["uid"])
    if event is None or pod.get("status", {}).get("phase") != "Pending":
        return None
    return event["reason"], event.get("message", "")


def _refusal_reason(message: str, reason: str) -> str:
    """A specific reason for a refused object, from the API server's message; otherwise `reason`."""
    signs = {
        "exceeded quota": "QuotaExceeded",
        "error looking up service account": "ServiceAccountMissing",
        "admission webhook": "AdmissionDenied",
        "ValidatingAdmissionPolicy": "AdmissionDenied",
        "violates PodSecurity": "PodSecurityViolation",
    }
    return next((found for sign, found in signs.items() if sign in message), reason)
