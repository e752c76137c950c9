"""Decides which notifications are due: pure functions of two statuses and the receivers."""

import hashlib
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from trainjob.api.cluster import seconds
from trainjob.api.notify import Receiver
from trainjob.api.trainjob_status import Notification, TrainJobStatus
from trainjob_operator.deadlines import add_clamped
from trainjob_operator.events import enters_phase
from trainjob_operator.interruptions import interruption_message

WAITING = "Waiting"
MAX_KEPT = 50
"""Notifications in a status; older ones are dropped."""
MAX_MESSAGE = 1024


class _Event(NamedTuple):
    """Something that a receiver may be told."""

    name: str
    reason: str
    message: str


def with_notifications(
    before: TrainJobStatus, status: TrainJobStatus, receivers: Sequence[Receiver], origin: str, now: datetime
) -> TrainJobStatus:
    """`status`, which follows `before`, with the notifications that are due now. `origin` identifies the state before
    the change."""
    events = [*_events(before, status)]
    due = [
        *((number, event) for event in events for number, each in enumerate(receivers) if event.name in each.events),
        *(
            (number, _Event(WAITING, status.reason or "", status.message or ""))
            for number, time in _waiting_times(status, receivers)
            if time <= now
        ),
    ]
    if not due:
        return status
    new = [
        Notification(
            id=hashlib.sha256(repr((origin, number, event.name, now)).encode()).hexdigest()[:32],
            receiver=number,
            event=event.name,
            time=now,
            reason=event.reason,
            message=event.message[:MAX_MESSAGE],
        )
        for number, event in due
    ]
    return status.model_copy(update={"notifications": _newest([*status.notifications, *new], status)})


def next_waiting_time(status: TrainJobStatus, receivers: Sequence[Receiver]) -> datetime | None:
    """When a receiver must be told that the job is still waiting."""
    return min((time for _, time in _waiting_times(status, receivers)), default=None)


def _events(before: TrainJobStatus, after: TrainJobStatus) -> Iterator[_Event]:
    if after.interruptions is not None and after.interruptions != before.interruptions:
        yield _Event("Interrupted", after.interruptions.last_reason, interruption_message(after.interruptions))
    if enters_phase(before, after) and after.phase is not None:
        yield _Event(after.phase, after.reason or "", after.message or "")


def _waiting_times(status: TrainJobStatus, receivers: Sequence[Receiver]) -> Iterator[tuple[int, datetime]]:
    """The receivers that have not been told yet that the job is waiting, and when they must be."""
    since = status.waiting_since
    if since is None:
        return
    told = {each.receiver for each in status.notifications if each.event == WAITING and each.time >= since}
    for number, receiver in enumerate(receivers):
        if receiver.waiting_longer_than is not None and number not in told:
            yield number, add_clamped(since, timedelta(seconds=seconds(receiver.waiting_longer_than)))


def _newest(notifications: Sequence[Notification], status: TrainJobStatus) -> list[Notification]:
    """The newest, and those by which receivers know that the job is waiting."""
    old, kept, since = notifications[:-MAX_KEPT], notifications[-MAX_KEPT:], status.waiting_since
    return [each for each in old if each.event == WAITING and since is not None and each.time >= since] + [*kept]
