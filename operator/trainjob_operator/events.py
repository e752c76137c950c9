"""Kubernetes Events of a TrainJob: what `kubectl describe` lists."""

import asyncio
import hashlib
import logging
from collections import deque
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from trainjob.api.cluster import KubernetesObject
from trainjob.api.names import GROUP, KIND, VERSION
from trainjob.api.resources import EVENTS
from trainjob.api.trainjob_status import Condition, TrainJobStatus
from trainjob_operator.api import Api, ApiError
from trainjob_operator.interruptions import interruption_message
from trainjob_operator.names import MANAGER
from trainjob_operator.verdict import DELETING, RAY_JOB_DELETING

SEND_SECONDS = 2.0
"""Longest time that sending an Event may delay the status it is about."""
MAX_QUEUED_EVENTS = 10_000
"""Limit for each namespace."""
RETRY_SECONDS = 1.0
FLUSH_SECONDS = 5.0

logger = logging.getLogger("trainjob.operator")


def events_for_change(before: TrainJobStatus, after: TrainJobStatus) -> Iterator[tuple[str, str, bool]]:
    """The Events for a change of status: reason, message, and whether it is a warning."""
    message = after.message or after.reason or ""
    if before.ray_job_name is None and after.ray_job_name is not None:
        yield "Created", f"created RayJob {after.ray_job_name}", False
    refusal, earlier = _refusal_of(after), _refusal_of(before)
    known = (DELETING, RAY_JOB_DELETING, earlier.reason if earlier is not None else None)
    if refusal is not None and refusal.reason not in known:
        yield refusal.reason, refusal.message, True
    if enters_phase(before, after):
        match after.phase:
            case "Running":
                yield "Started", f"training runs, attempt {after.attempt}", False
            case "Retrying" | "Failed":
                yield after.phase, f"{after.reason}: {message}", True
            case "Suspended" | "Succeeded":
                yield after.phase, message, False
            case _:
                pass
    if after.interruptions is not None and after.interruptions != before.interruptions:
        yield "Interrupted", f"{interruption_message(after.interruptions)} while training ran", True
    if after.waiting and [item.reason for item in before.waiting] != [item.reason for item in after.waiting]:
        yield "Waiting", f"{after.waiting[0].reason}: {message}", True


def enters_phase(before: TrainJobStatus, after: TrainJobStatus) -> bool:
    """Whether the job has entered its phase, or Retrying once more."""
    return before.phase != after.phase or (after.phase == "Retrying" and before.attempt != after.attempt)


def _refusal_of(status: TrainJobStatus) -> Condition | None:
    """The condition Accepted if it is False: why there is no RayJob, or why it does not match the TrainJob."""
    return next((each for each in status.conditions if each.type == "Accepted" and each.status == "False"), None)


class Recorder:
    """Sends Events immediately. If one fails (an admission webhook may be down), it is queued together with the later
    Events of its namespace, so that they delay no RayJob, no status and no Event of another namespace."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._queued: dict[str, deque[KubernetesObject]] = {}
        self._senders: dict[str, asyncio.Task[None]] = {}

    async def record(self, job: Mapping[str, Any], origin: str, reason: str, message: str, warning: bool) -> None:
        """Records an Event for the TrainJob with the metadata `job`. `origin` identifies the state before the change:
        an operator that is interrupted before it writes the new state repeats the same Event, which is created once."""
        namespace = job["namespace"]
        event = _event(job, _name(job, origin, reason), self._api.now, reason, message, warning)
        if namespace not in self._queued and await self._is_sent(event, SEND_SECONDS):
            return
        waiting = self._queued.setdefault(namespace, deque())
        if len(waiting) >= MAX_QUEUED_EVENTS:
            logger.warning("too many events are queued; lost: %s: %s", reason, message, extra={"job": job["name"]})
            return
        waiting.append(event)
        sender = self._senders.get(namespace)
        if sender is None or sender.done():  # kopf cancels all tasks, also foreign ones, when it restarts
            self._senders[namespace] = asyncio.create_task(self._send_all(namespace))

    async def flush(self) -> None:
        """Waits briefly until all queued Events are sent."""
        if self._senders:
            _, late = await asyncio.wait(self._senders.values(), timeout=FLUSH_SECONDS)
            for sender in late:
                sender.cancel()

    async def _send_all(self, namespace: str) -> None:
        """Sends the queued Events of a namespace until there are none."""
        waiting = self._queued[namespace]
        while waiting:
            while not await self._is_sent(waiting[0]):
                await asyncio.sleep(RETRY_SECONDS)
            waiting.popleft()
        del self._senders[namespace], self._queued[namespace]

    async def _is_sent(self, event: KubernetesObject, seconds: float | None = None) -> bool:
        """Sends an Event with a time limit. Returns whether it is done with: sent, or refused for good."""
        try:
            async with asyncio.timeout(seconds):
                await self._api.create(EVENTS, event["metadata"]["namespace"], event)
        except Exception as error:
            refusal = error.status if isinstance(error, ApiError) else None
            if refusal == 409:  # it was sent before, or a new leader will send it
                return True
            is_refused = refusal is not None and refusal < 500 and refusal != 429
            what = "is lost" if is_refused else "will be sent again"
            job = event["involvedObject"]["name"]
            logger.warning("event %s %s: %s", event["reason"], what, error or type(error).__name__, extra={"job": job})
            return is_refused
        return True


def change_origin(before: TrainJobStatus, ray_job: Mapping[str, Any] | None) -> str:
    """Identifies the state before a change: the status and the RayJob."""
    return before.model_dump_json(exclude={"training", "notifications"}) + (
        ray_job["metadata"]["uid"] if ray_job is not None else ""
    )


def _name(job: Mapping[str, Any], origin: str, reason: str) -> str:
    """The same name for the same change of the same TrainJob."""
    change = job["uid"], reason, origin
    return f"{job['name'][:200]}.{hashlib.sha256(repr(change).encode()).hexdigest()[:16]}"


def _event(
    job: Mapping[str, Any], name: str, now: datetime, reason: str, message: str, warning: bool
) -> KubernetesObject:
    namespace, time = job["namespace"], now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": KIND,
            "name": job["name"],
            "namespace": namespace,
            "uid": job["uid"],
        },
        "type": "Warning" if warning else "Normal",
        "reason": reason,
        "message": message[:1024],
        "source": {"component": MANAGER},
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    }
