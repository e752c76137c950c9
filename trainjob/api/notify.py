"""`spec.notify`: the receivers of notifications about a TrainJob on a cluster."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from trainjob.api.cluster import Duration, ResourceName
from trainjob.schema.base import OneOf, StrictModel
from trainjob.schema.uris import PLAIN_ENDPOINT

SECRET_KEY = r"^[A-Za-z0-9_.-]+$"

PhaseEvent = Literal["Starting", "Running", "Retrying", "Suspended", "Succeeded", "Failed"]
NotifyEvent = Literal[PhaseEvent, "Interrupted"]


class Webhook(StrictModel):
    """A URL that receives signed JSON by POST."""

    url: Annotated[str, Field(max_length=2048, pattern=PLAIN_ENDPOINT)] | None = None
    """The URL, without credentials; by default the one in the Secret's key `url`."""
    secret_name: ResourceName
    """Secret with the signing key in `key`: the base64 of 24 random bytes or more."""


class Apprise(StrictModel):
    """A chat, mail or paging service that apprise supports, such as Slack, Teams, Telegram or e-mail."""

    secret_name: ResourceName
    """Secret with the URL of the service in apprise's notation."""
    key: Annotated[str, Field(max_length=253, pattern=SECRET_KEY)] = "url"
    """The Secret's key with the URL."""


class Receiver(OneOf):
    """A receiver of notifications, and the occasions for them."""

    choices: ClassVar[tuple[str, ...]] = ("webhook", "apprise")

    webhook: Webhook | None = None
    """A URL that receives signed JSON by POST."""
    apprise: Apprise | None = None
    """A chat, mail or paging service that apprise supports, such as Slack, Teams, Telegram or e-mail."""
    events: Annotated[list[NotifyEvent], Field(max_length=16)] = ["Succeeded", "Failed"]
    """Phases that the job enters, and Interrupted: a pod was lost during training."""
    waiting_longer_than: Duration | None = None
    """Also notify once when the job has waited this long for pods, for a queue, for its next attempt, or for somebody
    to correct something."""

    @property
    def secret_name(self) -> str:
        """The Secret, in the TrainJob's namespace."""
        return getattr(self, self.chosen).secret_name


Receivers = Annotated[list[Receiver], Field(max_length=8)]
