"""Two statuses → the notifications that are due."""

from datetime import UTC, datetime, timedelta
from typing import Any

from operator_objects import trainjob

from trainjob.api.notify import Receiver
from trainjob.api.status_reasons import explanation
from trainjob.api.trainjob_status import Interruptions, TrainJobStatus
from trainjob_operator.events import change_origin
from trainjob_operator.notification_request import payload
from trainjob_operator.notifications import MAX_KEPT, next_waiting_time, with_notifications
from trainjob_operator.receivers import receivers_of
from trainjob_operator.settings import NotifySettings
from trainjob_operator.status import derive
from trainjob_operator.verdict import Observed

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LOST = Interruptions(count=1, last_reason="OOMKilled", last_pod="worker-1", last_time=NOW)


def receiver(**fields: Any) -> Receiver:
    return Receiver.model_validate({"webhook": {"secretName": "hook"}, **fields})


def after(before: TrainJobStatus, receivers: list[Receiver], at: datetime = NOW, **changes: Any) -> TrainJobStatus:
    status = before.model_copy(update=changes)
    return with_notifications(before, status, receivers, before.model_dump_json(), at)


def events(status: TrainJobStatus) -> list[tuple[int, str, str]]:
    return [(each.receiver, each.event, each.reason) for each in status.notifications]


def test_a_receiver_is_told_of_its_events_only():
    receivers = [receiver(), receiver(events=["Running", "Interrupted"]), receiver(events=[])]
    status = after(TrainJobStatus(), receivers, phase="Pending", reason="Created")
    status = after(status, receivers, phase="Running", reason="Training")
    status = after(status, receivers, interruptions=LOST)
    status = after(status, receivers, reason="Finishing")
    status = after(status, receivers, phase="Failed", reason="AppFailed", message="exit code 1")
    assert events(status) == [(1, "Running", "Training"), (1, "Interrupted", "OOMKilled"), (0, "Failed", "AppFailed")]
    assert status.notifications[1].message == "pod worker-1 was lost (OOMKilled)"
    assert len({each.id for each in status.notifications}) == 3


def test_every_attempt_that_fails_is_an_event():
    receivers, status = [receiver(events=["Retrying"])], TrainJobStatus(phase="Running", attempt=1)
    for attempt in (2, 2, 3):
        status = after(status, receivers, phase="Retrying", reason="AppFailed", attempt=attempt)
    assert len({each.id for each in status.notifications}) == 2


def test_a_job_that_waits_is_told_once_and_again_when_it_waits_again():
    receivers = [receiver(waitingLongerThan="10m"), receiver(waitingLongerThan="1h"), receiver()]
    status = TrainJobStatus(phase="Pending", reason="Unschedulable", waiting_since=NOW)
    times = []
    for minutes in (9, 10, 30, 60, 90):
        times.append(next_waiting_time(status, receivers))
        status = after(status, receivers, NOW + timedelta(minutes=minutes))
    assert events(status) == [(0, "Waiting", "Unschedulable"), (1, "Waiting", "Unschedulable")]
    first, second = NOW + timedelta(minutes=10), NOW + timedelta(hours=1)
    assert times == [first, first, second, second, None]
    status = after(status, receivers, phase="Running", waiting_since=None)
    assert next_waiting_time(status, receivers) is None
    later = NOW + timedelta(hours=2)
    status = after(status, receivers, NOW + timedelta(hours=9), phase="Retrying", waiting_since=later)
    assert [event for _, event, _ in events(status)] == ["Waiting"] * 4


def test_only_the_newest_are_kept_and_no_wait_is_told_twice():
    receivers = [receiver(events=["Retrying"], waitingLongerThan="1s")]
    status = TrainJobStatus(phase="Retrying", attempt=1, waiting_since=NOW)
    for attempt in range(2, 100):
        status = after(status, receivers, NOW + timedelta(seconds=attempt), attempt=attempt)
    assert [event for _, event, _ in events(status)].count("Waiting") == 1
    assert len(status.notifications) == MAX_KEPT + 1


def test_a_job_waits_until_it_runs_or_is_suspended_by_its_user():
    def since(before: TrainJobStatus, at: datetime, **spec: Any) -> TrainJobStatus:
        return derive(trainjob(**spec), 1, before, Observed(), at)

    first = since(TrainJobStatus(), NOW)
    assert first.waiting_since == NOW
    assert since(first, NOW + timedelta(hours=1)).waiting_since == NOW
    assert since(first, NOW, suspend=True).waiting_since is None


def test_the_settings_receivers_are_those_of_jobs_without_their_own():
    on = NotifySettings(secret_names=["hook"], receivers=[receiver()])
    assert receivers_of(trainjob(), on) == [receiver()]
    assert receivers_of(trainjob(notify=[]), on) == []
    own = [{"webhook": {"secretName": "hook"}, "events": ["Failed"]}]
    assert receivers_of(trainjob(notify=own), on) == [receiver(events=["Failed"])]
    assert list(receivers_of(trainjob(notify=own), NotifySettings())) == []


def test_a_delivery_changes_the_name_of_no_kubernetes_event():
    """Otherwise an operator whose status is refused because of it would repeat the Events before the status."""
    status = after(TrainJobStatus(phase="Running"), [receiver()], phase="Failed")
    sent = [each.model_copy(update={"state": "Sent"}) for each in status.notifications]
    assert change_origin(status, None) == change_origin(status.model_copy(update={"notifications": sent}), None)


def test_a_message_has_the_remedy_of_its_reason():
    status = after(TrainJobStatus(phase="Pending"), [receiver()], phase="Failed", reason="DeadlineExceeded")
    said = payload(trainjob(), status.notifications[0])
    known = explanation("DeadlineExceeded")
    assert known is not None
    assert (said["meaning"], said["remedy"]) == (known.meaning, known.remedy)
    unknown = payload(trainjob(), status.notifications[0].model_copy(update={"reason": "OutOfPods"}))
    assert (unknown["meaning"], unknown["remedy"]) == (None, None)
