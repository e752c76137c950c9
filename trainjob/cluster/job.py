"""A TrainJob as a cluster has it, and its Events."""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Self

from trainjob.api.cluster import KubernetesObject
from trainjob.api.names import GROUP, KIND, OPERATOR, run_name
from trainjob.api.trainjob_status import FINAL, TrainJobStatus, read_status


@dataclass(frozen=True)
class ClusterJob:
    """A TrainJob. Fields of its status that this version cannot read count as absent."""

    document: KubernetesObject

    @property
    def name(self) -> str:
        return self.document["metadata"]["name"]

    @property
    def namespace(self) -> str:
        return self.document["metadata"]["namespace"]

    @property
    def uid(self) -> str:
        return self.document["metadata"]["uid"]

    @property
    def full_name(self) -> str:
        """The name as kubectl prints it."""
        return f"{KIND.lower()}.{GROUP}/{self.name}"

    @property
    def resource_version(self) -> str:
        return self.document["metadata"]["resourceVersion"]

    @property
    def created(self) -> datetime:
        return _time(self.document["metadata"]["creationTimestamp"])

    @property
    def is_being_deleted(self) -> bool:
        return "deletionTimestamp" in self.document["metadata"]

    @property
    def has_ended(self) -> bool:
        return self.status.phase in FINAL

    @property
    def spec(self) -> dict[str, Any]:
        """The spec with the defaults that the cluster has filled in."""
        return self.document.get("spec") or {}

    @cached_property
    def _read(self) -> tuple[TrainJobStatus, list[str]]:
        return read_status(self.document)

    @property
    def status(self) -> TrainJobStatus:
        return self._read[0]

    @property
    def phase_and_reason(self) -> str:
        """The phase and, if it is another word, the reason, such as `Pending, Created`."""
        words = dict.fromkeys(filter(None, (self.status.phase, self.status.reason)))
        return ", ".join(words) or "no phase yet"

    @property
    def message(self) -> str:
        """The message of the status; without a phase, the reason why there is none."""
        controller = self.spec.get("managedBy", OPERATOR)
        if self.status.phase is not None:
            return self.status.message or ""
        if controller != OPERATOR:
            return f"the operator leaves the job to {controller} (spec.managedBy)"
        return "the operator has not seen the job; `trainjob doctor` shows whether it runs"

    @property
    def problems(self) -> list[str]:
        """The part of the status that cannot be read."""
        return self._read[1]

    @property
    def run(self) -> str | None:
        """The run's folder: its URI or, for display, its path on a PersistentVolumeClaim. None if there is no storage
        yet."""
        storage = self.status.storage
        if storage is None:
            return None
        name = run_name(self.name, self.uid)
        if storage.persistent_volume_claim is not None:
            return f"{name} on the PersistentVolumeClaim {storage.persistent_volume_claim}"
        return f"{str(storage.uri).rstrip('/')}/{name}"


@dataclass(frozen=True)
class Event:
    """Something that has happened to a job."""

    time: datetime
    reason: str
    message: str
    is_warning: bool = False
    count: int = 1

    @classmethod
    def of(cls, document: KubernetesObject) -> Self:
        series = document.get("series") or {}
        last = (
            series.get("lastObservedTime")
            or document.get("lastTimestamp")
            or document.get("eventTime")
            or document["metadata"]["creationTimestamp"]
        )
        return cls(
            _time(last),
            document.get("reason", ""),
            document.get("message", ""),
            document.get("type") == "Warning",
            document.get("count") or series.get("count") or 1,
        )


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
