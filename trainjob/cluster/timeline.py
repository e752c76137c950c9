"""The history of a job, from its Events and its status, which outlives the cluster's Events."""

from collections.abc import Iterator, Sequence

from trainjob.api.trainjob_status import FINAL, TrainJobStatus
from trainjob.cluster.job import ClusterJob, Event


def timeline(job: ClusterJob, events: Sequence[Event]) -> list[Event]:
    """The job's Events and those that follow from its status, the oldest first."""
    reasons = {event.reason for event in events}
    others = [event for event in _of_status(job.status) if event.reason not in reasons]
    submitted = Event(job.created, "Submitted", "")
    return sorted([submitted, *events, *others], key=lambda event: event.time)


def _of_status(status: TrainJobStatus) -> Iterator[Event]:
    """The Events that follow from the status."""
    message = status.message or ""
    lost = status.interruptions
    if lost is not None:
        pod = f"pod {lost.last_pod}: " if lost.last_pod is not None else ""
        yield Event(lost.last_time, "Interrupted", f"{pod}{lost.last_reason}", is_warning=True, count=lost.count)
    if status.phase in FINAL and status.completion_time is not None:
        failed = status.phase == "Failed"
        text = f"{status.reason}: {message}" if failed else message
        yield Event(status.completion_time, str(status.phase), text, is_warning=failed)
    for condition in status.conditions:
        if condition.type == "Suspended" and condition.status == "True":
            yield Event(condition.last_transition_time, "Suspended", condition.message)
        if condition.type == "Accepted" and condition.status == "False":
            yield Event(condition.last_transition_time, condition.reason, condition.message, is_warning=True)
