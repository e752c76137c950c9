"""Kubernetes Events of a TrainJob: what `kubectl describe` lists."""

import asyncio
import logging
from collections import deque
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any
from uuid import uuid4

from trainjob.api.cluster import KubernetesObject
from trainjob.api.trainjob import GROUP, KIND, VERSION
from trainjob.api.trainjob_status import TrainJobStatus
from trainjob_operator.api import EVENTS, Api, ApiError
from trainjob_operator.interruptions import last_interruption
from trainjob_operator.names import MANAGER

MOST_WAITING = 10_000
"""Events of one namespace."""
RETRY_SECONDS = 1.0
FLUSH_SECONDS = 5.0

logger = logging.getLogger("trainjob.operator")


def events_of(before: TrainJobStatus, after: TrainJobStatus) -> Iterator[tuple[str, str, bool]]:
    """The Events of a change of status: reason, message, and whether it is a warning."""
    message = after.message or after.reason or ""
    if before.ray_job_name is None and after.ray_job_name is not None:
        yield "Created", f"created RayJob {after.ray_job_name}", False
    fails_again = after.phase == "Retrying" and before.attempt != after.attempt
    if before.phase != after.phase or fails_again:
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
        yield "Interrupted", f"{last_interruption(after.interruptions)} while training ran", True
    if after.waiting and [item.reason for item in before.waiting] != [item.reason for item in after.waiting]:
        yield "Waiting", f"{after.waiting[0].reason}: {message}", True


class Recorder:
    """Sends the events of each namespace one after the other, so that they never hold up a RayJob or a status, nor
    those of a namespace whose events fail (an admission webhook may be down) those of another one."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._waiting: dict[str, deque[KubernetesObject]] = {}
        self._senders: dict[str, asyncio.Task[None]] = {}

    def record(self, job: Mapping[str, Any], reason: str, message: str, warning: bool) -> None:
        """Has an event of the TrainJob recorded that has the metadata `job`."""
        namespace = job["namespace"]
        waiting = self._waiting.setdefault(namespace, deque())
        if len(waiting) >= MOST_WAITING:
            logger.warning("too many events wait; lost: %s: %s", reason, message, extra={"job": job["name"]})
            return
        waiting.append(_event(job, self._api.now, reason, message, warning))
        if namespace not in self._senders:
            self._senders[namespace] = asyncio.create_task(self._send_all(namespace))

    async def flush(self) -> None:
        """Waits until all is sent, but not for long."""
        if self._senders:
            _, late = await asyncio.wait(self._senders.values(), timeout=FLUSH_SECONDS)
            for sender in late:
                sender.cancel()

    async def _send_all(self, namespace: str) -> None:
        """Sends what waits in a namespace, until nothing does."""
        waiting = self._waiting[namespace]
        while waiting:
            while not await self._sent(waiting[0]):
                await asyncio.sleep(RETRY_SECONDS)
            waiting.popleft()
        del self._senders[namespace], self._waiting[namespace]

    async def _sent(self, event: KubernetesObject) -> bool:
        """Whether the event need not be sent again; one that is refused will be refused again."""
        try:
            await self._api.create(EVENTS, event["metadata"]["namespace"], event)
        except Exception as error:
            is_refused = isinstance(error, ApiError) and error.status < 500 and error.status != 429
            what = "is lost" if is_refused else "will be sent again"
            job = event["involvedObject"]["name"]
            logger.warning("event %s %s: %s", event["reason"], what, error, extra={"job": job})
            return is_refused
        return True


def _event(job: Mapping[str, Any], now: datetime, reason: str, message: str, warning: bool) -> KubernetesObject:
    namespace, time = job["namespace"], now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{job['name'][:200]}.{uuid4().hex[:16]}", "namespace": namespace},
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
