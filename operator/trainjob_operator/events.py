"""Kubernetes Events of a TrainJob: what `kubectl describe` lists."""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import uuid4

from trainjob.api.cluster import KubernetesObject
from trainjob.api.trainjob import GROUP, KIND, VERSION
from trainjob.api.trainjob_status import TrainJobStatus
from trainjob_operator.api import EVENTS, Api, ApiError
from trainjob_operator.names import MANAGER

MOST_WAITING = 10_000
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
    if after.waiting and [item.reason for item in before.waiting] != [item.reason for item in after.waiting]:
        yield "Waiting", f"{after.waiting[0].reason}: {message}", True


class Recorder:
    """Records events one after the other, so that they never hold up a RayJob or a status."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._waiting: asyncio.Queue[KubernetesObject] = asyncio.Queue(MOST_WAITING)

    def record(self, job: Mapping[str, Any], reason: str, message: str, warning: bool) -> None:
        """Has an event of the TrainJob recorded that has the metadata `job`."""
        try:
            self._waiting.put_nowait(_event(job, self._api.now, reason, message, warning))
        except asyncio.QueueFull:
            logger.warning("too many events wait; lost: %s: %s", reason, message, extra={"job": job["name"]})

    async def run(self) -> None:
        """Sends what is recorded, for ever."""
        while True:
            event = await self._waiting.get()
            while not await self._sent(event):
                await asyncio.sleep(RETRY_SECONDS)
            self._waiting.task_done()

    async def flush(self) -> None:
        """Waits until all is sent, but not for long."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._waiting.join(), FLUSH_SECONDS)

    async def _sent(self, event: KubernetesObject) -> bool:
        """Whether the event need not be sent again; one that is refused will be refused again."""
        try:
            await self._api.create(EVENTS, event["metadata"]["namespace"], event)
        except Exception as error:
            is_refused = isinstance(error, ApiError) and error.status < 500 and error.status != 429
            what = "is lost" if is_refused else "comes again"
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
