"""The receivers of a job's notifications that the operator's settings allow."""

from collections.abc import Iterator, Sequence

from trainjob.api import TrainJob
from trainjob.api.notify import Receiver
from trainjob_operator.settings import NotifySettings


def receivers_of(job: TrainJob, settings: NotifySettings) -> Sequence[Receiver]:
    """The receivers of a job's notifications; none if notifications are off."""
    if not settings.secret_names:
        return ()
    return settings.receivers if job.spec.notify is None else job.spec.notify


def refused_receivers(job: TrainJob, settings: NotifySettings) -> Iterator[str]:
    """Receivers of `spec.notify` that the settings do not allow, as messages."""
    if job.spec.notify and not settings.secret_names:
        yield "spec.notify has no effect: notifications are off in the operator's settings (notify.secretNames)"
        return
    for number, receiver in enumerate(job.spec.notify or ()):
        if receiver.secret_name not in settings.secret_names:
            yield f"spec.notify[{number}] gets no notifications: {secret_refusal(receiver, settings)}"


def secret_refusal(receiver: Receiver, settings: NotifySettings) -> str:
    allowed = ", ".join(settings.secret_names)
    return f"the operator may not read the Secret {receiver.secret_name}; notify.secretNames in its settings: {allowed}"
