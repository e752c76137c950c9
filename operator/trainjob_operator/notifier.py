"""Delivers notifications beside the reconciliation, which only records them in the status.

A notification is recorded together with the change that it is about, so no restart loses it, and marked when it is
delivered. An operator that ends between delivery and mark has the next one deliver it again, with the same ID.
"""

import asyncio
import json
import logging
import sys
from collections import Counter
from collections.abc import Sequence, Set
from datetime import timedelta

from trainjob.api import TrainJob
from trainjob.api.cluster import KubernetesObject
from trainjob.api.resources import TRAIN_JOBS
from trainjob.api.trainjob_status import Notification, read_status
from trainjob_operator.api import Api, ApiError
from trainjob_operator.events import Recorder
from trainjob_operator.notification_request import CannotSend, request_for
from trainjob_operator.receivers import receivers_of
from trainjob_operator.settings import NotifySettings
from trainjob_operator.train_job import read_train_job
from trainjob_operator.work_queue import WorkQueue

Key = tuple[str, str]

DELIVERY_SECONDS = 20.0
"""Longest time for one attempt, after which its process is killed."""
GIVE_UP = timedelta(hours=1)
"""How long a receiver may be away."""
RETRY_SECONDS = 5.0, 300.0
"""Range of the delay after a failed attempt."""
MAX_PER_NAMESPACE = 2
"""TrainJobs of a namespace at a time, so that its slow receivers hold up no other namespace."""
BUSY_SECONDS = 1.0
MARK_ATTEMPTS = 5
MIN_ATTEMPTS = 3
"""The operator itself may have been away for longer than GIVE_UP."""
MAX_ERROR = 500

_COMMAND = (sys.executable, "-I", "-m", "trainjob_operator.delivery")

logger = logging.getLogger("trainjob.operator")


class Notifier:
    """Delivers the pending notifications of the TrainJobs in its queue."""

    def __init__(self, api: Api, settings: NotifySettings, recorder: Recorder) -> None:
        self._api, self._settings, self._recorder = api, settings, recorder
        self.queue: WorkQueue[Key] = WorkQueue()
        self._busy: Counter[str] = Counter()
        self._pending: dict[Key, Set[str]] = {}
        """IDs of the notifications of TrainJobs that are in the queue or will be tried again."""
        self._delivered: set[str] = set()
        """IDs of notifications that are delivered and not yet marked."""
        self._failures: Counter[str] = Counter()
        """Failed attempts by ID."""

    def add(self, key: Key, notifications: Sequence[Notification]) -> None:
        """Queues a TrainJob if any of its pending notifications is new."""
        pending = {each.id for each in notifications if each.state == "Pending"}
        if pending - self._pending.get(key, set()):
            self.queue.add(key)
        if pending:
            self._pending[key] = pending
        else:
            self._pending.pop(key, None)

    async def work(self) -> None:
        """Delivers notifications forever."""
        await self.queue.work(self._work)

    async def _work(self, key: Key) -> float | None:
        namespace = key[0]
        if self._busy[namespace] >= MAX_PER_NAMESPACE:
            return BUSY_SECONDS
        self._busy[namespace] += 1
        try:
            return await self.deliver(key)
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            logger.warning("notifications failed, will be retried: %s", what, extra={"job": "/".join(key)})
            raise
        finally:
            self._busy[namespace] -= 1

    async def deliver(self, key: Key) -> float | None:
        """Delivers the pending notifications of a TrainJob, to each receiver in order. Returns the seconds until the
        next attempt, or None."""
        body = await self._api.get(TRAIN_JOBS, *key)
        if body is None:
            self._pending.pop(key, None)
            return None
        job, status = read_train_job(body)[0], read_status(body)[0]
        delays: dict[int, float] = {}
        for each in status.notifications:
            if each.state != "Pending" or each.receiver in delays:
                continue
            error = "" if each.id in self._delivered else await self._error_of(job, each)
            age = self._api.now - each.time
            if not error:
                self._delivered.add(each.id)
                await self._mark(key, body, each.model_copy(update={"state": "Sent", "error": None}))
                self._delivered.discard(each.id)
                continue
            self._failures[each.id] += 1
            if age > GIVE_UP and self._failures[each.id] >= MIN_ATTEMPTS:
                await self._give_up(key, body, job, each, error)
                del self._failures[each.id]
            else:
                delays[each.receiver] = min(max(age.total_seconds() / 4, RETRY_SECONDS[0]), RETRY_SECONDS[1])
                await self._mark(key, body, each.model_copy(update={"error": error}))
        if not delays:
            self._pending.pop(key, None)
        return min(delays.values(), default=None)

    async def _give_up(
        self, key: Key, body: KubernetesObject, job: TrainJob, notification: Notification, error: str
    ) -> None:
        receivers = "spec.notify" if job.spec.notify is not None else "the operator's notify.receivers"
        message = f"{notification.event} could not be sent to {receivers}[{notification.receiver}]: {error}"
        await self._recorder.record(body["metadata"], notification.id, "NotificationFailed", message, warning=True)
        await self._mark(key, body, notification.model_copy(update={"state": "Failed", "error": error}))

    async def _error_of(self, job: TrainJob, notification: Notification) -> str:
        """Makes one attempt. Returns why it failed, or an empty text."""
        receivers = receivers_of(job, self._settings)
        if notification.receiver >= len(receivers):
            return "there is no such receiver any more"
        try:
            request = await request_for(self._api, self._settings, job, receivers[notification.receiver], notification)
        except CannotSend as error:
            return str(error)
        return await attempt({"hosts": self._settings.hosts, **request})

    async def _mark(self, key: Key, body: KubernetesObject, marked: Notification) -> None:
        """Replaces a notification in the TrainJob's status, whatever else has changed there meanwhile."""
        wanted = marked.model_dump(mode="json", by_alias=True, exclude_none=True)
        for attempt in range(1, MARK_ATTEMPTS + 1):
            found = await self._api.get(TRAIN_JOBS, *key)
            if found is None or found["metadata"]["uid"] != body["metadata"]["uid"]:
                return
            before = found.get("status", {}).get("notifications", [])
            after = [wanted if each["id"] == marked.id else each for each in before]
            if after == before:
                return
            patch = [
                {"op": "test", "path": "/metadata/uid", "value": found["metadata"]["uid"]},
                {"op": "test", "path": "/status/notifications", "value": before},
                {"op": "replace", "path": "/status/notifications", "value": after},
            ]
            try:
                await self._api.patch(TRAIN_JOBS, key[0], f"{key[1]}/status", patch)
            except ApiError as error:
                if error.status not in (409, 422) or attempt == MARK_ATTEMPTS:
                    raise
            else:
                return


async def attempt(request: KubernetesObject) -> str:
    """Delivers in a separate process. Returns an error, or an empty string."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *_COMMAND, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL, env={}
    )
    try:
        async with asyncio.timeout(DELIVERY_SECONDS):
            said, _ = await process.communicate(json.dumps(request).encode())
    except TimeoutError:
        return f"no answer within {DELIVERY_SECONDS:.0f} s"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        return f"the process that sends it has ended with status {process.returncode}"
    return said.decode(errors="replace").strip()[:MAX_ERROR]
