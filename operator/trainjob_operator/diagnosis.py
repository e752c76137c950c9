"""Why pods are not running: a pure function of what the cluster holds."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trainjob.api.trainjob_status import Waiting

NORMAL = ("PodInitializing", "ContainerCreating")
"""Reasons of containers that are starting."""

EXPLAINED = ("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "FailedCreate")
"""Events that tell why a pod does not start, where its own status does not."""

MOST_REASONS = 10


def diagnose(
    pods: Iterable[Mapping[str, Any]],
    cluster: Mapping[str, Any] | None,
    events: Iterable[Mapping[str, Any]],
    refusals: Iterable[tuple[str, str]] = (),
) -> list[Waiting]:
    """What holds pods back, by reason, the most pods first, with the message of most of them. `cluster` is the
    RayCluster's status, `events` are the pods', and `refusals` are reasons and messages of what could not be created
    for the job."""
    event_of = {event["involvedObject"].get("uid"): event for event in events if event.get("reason") in EXPLAINED}
    messages: dict[str, Counter[str]] = defaultdict(Counter)
    for pod in pods:
        found = _why_by_node(pod)
        if found is None and "deletionTimestamp" not in pod["metadata"]:
            found = _why(pod) or _why_by_event(pod, event_of)
        if found is not None:
            messages[found[0]][found[1]] += 1
    for condition in (cluster or {}).get("conditions", []):
        if condition["type"] == "ReplicaFailure" and condition["status"] == "True":
            message = condition.get("message", "")
            messages[_refusal(message, condition.get("reason", "FailedCreate"))][message] += 0
    for reason, message in refusals:
        messages[_refusal(message, reason)][message] += 0
    waiting = [
        Waiting(reason=reason, pods=found.total(), message=min(found, key=lambda text: (-found[text], text))[:1024])
        for reason, found in messages.items()
    ]
    return sorted(waiting, key=lambda item: (-item.pods, item.reason))[:MOST_REASONS]


def words_of_waiting(waiting: Waiting) -> str:
    """With the number of pods, if there are any."""
    pods = waiting.pods
    return f"{pods} pod{'s' if pods != 1 else ''} waiting: {waiting.message}" if pods else waiting.message


def _why_by_node(pod: Mapping[str, Any]) -> tuple[str, str] | None:
    """Of a Ray pod on a node that has stopped answering: KubeRay makes no other before this one is gone for good, which
    only the node can say, or whoever removes the node."""
    metadata, conditions = pod["metadata"], {each["type"]: each for each in pod.get("status", {}).get("conditions", [])}
    ready, containers = conditions.get("Ready", {}), conditions.get("ContainersReady", {})
    # Only the control plane says that a pod is not ready whose containers are, and gives no reason.
    is_lost = ready.get("status") == "False" and "reason" not in ready and containers.get("status") == "True"
    if not is_lost or "ray.io/node-type" not in metadata.get("labels", {}):
        return None
    node = pod["spec"].get("nodeName")
    message = f"node {node} of pod {metadata['name']} does not answer"
    return "NodeLost", f"{message}; if it stays away, take it out of service: the pod is then made elsewhere"


def _why(pod: Mapping[str, Any]) -> tuple[str, str] | None:
    status = pod.get("status", {})
    if status.get("phase") in ("Succeeded", "Failed"):
        return None
    for condition in status.get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return condition.get("reason", "Unschedulable"), condition.get("message", "")
    for container in _containers(status):
        waiting = container.get("state", {}).get("waiting")
        if waiting is not None and waiting.get("reason") not in (None, *NORMAL):
            return waiting["reason"], _message(container, waiting)
    return None


def _containers(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from status.get("initContainerStatuses", [])
    yield from status.get("containerStatuses", [])


def _message(container: Mapping[str, Any], waiting: Mapping[str, Any]) -> str:
    """With how it last ended, which a crash loop's own message does not say."""
    message = f"container {container['name']}: {waiting.get('message', '')}"
    ended = container.get("lastState", {}).get("terminated")
    if ended is not None:
        words = [ended.get("reason", "no reason given"), *ended.get("message", "").strip().splitlines()[-1:]]
        message += f" (last exit code {ended.get('exitCode')}, {': '.join(words)})"
    return message


def _why_by_event(pod: Mapping[str, Any], event_of: Mapping[str, Mapping[str, Any]]) -> tuple[str, str] | None:
    event = event_of.get(pod["metadata"]["uid"])
    if event is None or pod.get("status", {}).get("phase") != "Pending":
        return None
    return event["reason"], event.get("message", "")


def _refusal(message: str, reason: str) -> str:
    """What refused an object, by the API server's words; `reason` where they name nothing that is known."""
    signs = {
        "exceeded quota": "QuotaExceeded",
        "error looking up service account": "ServiceAccountMissing",
        "admission webhook": "AdmissionDenied",
        "ValidatingAdmissionPolicy": "AdmissionDenied",
        "violates PodSecurity": "PodSecurityViolation",
    }
    return next((found for sign, found in signs.items() if sign in message), reason)
