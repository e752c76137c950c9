"""Handlers of kopf's watch events: every change only queues its TrainJob for reconciliation."""

import hashlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import Any

import kopf

from trainjob.api.names import GROUP, KIND, PLURAL, UID_LABEL, VERSION
from trainjob.api.trainjob_status import FINAL
from trainjob_operator.deadlines import KUBERAY_END_GRACE, add_clamped
from trainjob_operator.head import parse_time
from trainjob_operator.metrics import JOBS
from trainjob_operator.names import NAME_ANNOTATION
from trainjob_operator.reconcile import REASONS_TO_DELETE, Key
from trainjob_operator.train_job import is_managed_by_another
from trainjob_operator.watching import LISTED

Body = Mapping[str, Any]


class Watcher:
    """Queues TrainJobs when they, their RayJobs or their pods change."""

    def __init__(self, add: Callable[[Key, bool], None], namespaces: Collection[str] = ()) -> None:
        """`add` is called with a key and whether it is urgent; objects from an initial list mostly are not. TrainJobs
        outside `namespaces` are ignored, unless it is empty."""
        self._add = add
        self._namespaces = frozenset(namespaces)
        self._listed: list[Key] = []
        """TrainJobs to queue once a list is complete."""
        self._seen: dict[Key, bytes] = {}
        """A digest of the relevant fields of each TrainJob that is not settled."""
        self._phases: dict[Key, str] = {}
        self._numbers: Counter[tuple[str, str]] = Counter()

    def register(self, registry: kopf.OperatorRegistry) -> None:
        kopf.on.event(GROUP, VERSION, PLURAL, registry=registry)(self.train_job)
        has_uid = {UID_LABEL: kopf.PRESENT}
        kopf.on.event("ray.io", "v1", "rayjobs", labels=has_uid, registry=registry)(self.ray_job)
        kopf.on.event("", "v1", "pods", labels=has_uid, registry=registry)(self.owned_object)

    async def train_job(self, body: Body, **event: Any) -> None:
        """Handles an event of a TrainJob. In its status only the trainer's final report matters here, neither progress
        nor the operator's own writes. The exception is a lost head: the trainer may be the first to report that there
        is a new driver, as KubeRay may wait up to 15 minutes before it asks again."""
        if event["type"] == LISTED:
            self._queue_listed()
            return
        if is_managed_by_another(body) or not self._watches(body["metadata"]["namespace"]):
            return
        metadata, status = body["metadata"], body.get("status", {})
        key = (metadata["namespace"], metadata["name"])
        self._count(key, None if event["type"] == "DELETED" else status.get("phase") or "Pending")
        if event["type"] == "DELETED":
            self._seen.pop(key, None)
            return
        training = status.get("training") or {}
        failure = training.get("failure")
        state = _digest(
            metadata["uid"],
            metadata["generation"],
            metadata.get("labels"),
            metadata.get("annotations"),
            training.get("stage") == "Finished",
            failure and failure.get("retryable", True),
            status.get("reason") == "HeadLost" and training.get("updatedTime"),
        )
        is_new = "phase" not in status
        if _is_settled(body):
            self._seen.pop(key, None)
        elif self._seen.get(key) != state or is_new or event["type"] is None:  # None: listed after a gap in the watch
            self._seen[key] = state
            self._queue(key, event["type"] is not None or is_new)

    async def ray_job(self, body: Body, **event: Any) -> None:
        """Handles an event of a RayJob. A new one without a finalizer is ignored: KubeRay has not seen it yet."""
        if event["type"] != "ADDED" or body["metadata"].get("finalizers"):
            await self.owned_object(body, **event)

    async def owned_object(self, body: Body, **event: Any) -> None:
        """Queues the TrainJob that a RayJob or pod belongs to. An unknown TrainJob will be reconciled anyway."""
        if event["type"] == LISTED:
            self._queue_listed()
            return
        metadata = body["metadata"]
        owners = [owner["name"] for owner in metadata.get("ownerReferences", []) if owner["kind"] == KIND]
        name = next(iter(owners), metadata.get("annotations", {}).get(NAME_ANNOTATION))
        key = (metadata["namespace"], name)
        if key in self._seen:
            self._queue(key, event["type"] is not None)

    def _watches(self, namespace: str) -> bool:
        return not self._namespaces or namespace in self._namespaces

    def _queue(self, key: Key, is_urgent: bool) -> None:
        """Queues urgent keys now, and others once a list is complete: reconciliations take the API server's time that
        the lists need."""
        if is_urgent:
            self._add(key, True)
        else:
            self._listed.append(key)

    def _queue_listed(self) -> None:
        for key in self._listed:
            self._add(key, False)
        self._listed.clear()

    async def forget_deleted(self, keys: Callable[[], Awaitable[set[Key]]]) -> None:
        """Stops counting TrainJobs that are no longer in `keys`, the list of all: deletions during a gap in the watch
        go unreported."""
        known = set(self._phases)
        for key in known - await keys():
            self._count(key, None)
            self._seen.pop(key, None)

    def _count(self, key: Key, phase: str | None) -> None:
        """Updates the number of jobs by namespace and phase. Zeros are not exported."""
        before = self._phases.pop(key, None)
        if before is not None:
            self._numbers[key[0], before] -= 1
            self._export(key[0], before)
        if phase is not None:
            self._phases[key] = phase
            self._numbers[key[0], phase] += 1
            self._export(key[0], phase)

    def _export(self, namespace: str, phase: str) -> None:
        if self._numbers[namespace, phase]:
            JOBS.labels(namespace, phase).set(self._numbers[namespace, phase])
        else:
            del self._numbers[namespace, phase]
            JOBS.remove(namespace, phase)


def _digest(*parts: Any) -> bytes:
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).digest()


def _is_settled(body: Body) -> bool:
    """Whether nothing is left to do for a finished TrainJob. One that ended recently may still hold its pods."""
    status, spec = body.get("status", {}), body["spec"]
    ended = parse_time(status.get("completionTime"))
    if ended is not None and datetime.now(UTC) < add_clamped(ended, 2 * KUBERAY_END_GRACE):
        return False
    if status.get("phase") not in FINAL or status.get("reason") in REASONS_TO_DELETE:
        return False
    if status.get("observedGeneration") != body["metadata"]["generation"]:
        return False
    if any(each.get("state") == "Pending" for each in status.get("notifications", ())):
        return False
    return not spec.keys() & {"ttlAfterFinished", "rayJobTTLAfterFinished"} and "total" not in spec.get("deadlines", {})
