"""`status` of a TrainJob in a cluster. The operator writes all of it except `training`."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from trainjob.api.storage import Storage
from trainjob.api.training_status import Time, TrainingStatus
from trainjob.schema.base import StrictModel

Phase = Literal["Pending", "Starting", "Running", "Retrying", "Suspended", "Succeeded", "Failed"]
ConditionType = Literal["Accepted", "Complete", "Failed", "Suspended", "Reconciling", "Stalled", "Ready"]
FINAL: tuple[Phase, ...] = ("Succeeded", "Failed")
"""Phases that a job stays in."""
Count = Annotated[int, Field(ge=0)]


class Condition(StrictModel):
    """A Kubernetes condition."""

    type: ConditionType
    """Accepted: the operator was able to create a RayJob. Complete, Failed and Suspended: the phase. Reconciling: the
    job is in progress. Stalled: the job cannot proceed until somebody changes something. Ready: the model is
    trained."""
    status: Literal["True", "False", "Unknown"]
    """Whether the condition is true."""
    reason: str
    """The reason, in one word."""
    message: str = ""
    """The reason, for people."""
    last_transition_time: Time
    """The time of the last change of `status`."""
    observed_generation: int | None = None
    """The spec's generation that this applies to."""


class WorkersStatus(StrictModel):
    """The worker processes."""

    desired: Count
    """Requested workers."""
    ready: Count
    """Workers in pods that are ready."""


class Waiting(StrictModel):
    """A reason why pods of the job are not running."""

    reason: str
    """The reason in one word, such as Unschedulable or ImagePullBackOff."""
    pods: Count
    """Number of affected pods; 0 if they could not be created."""
    message: str = ""
    """The cluster's message."""


class Interruptions(StrictModel):
    """Pods lost during training, which then resumed from the latest checkpoint in the same attempt."""

    count: Count
    """Number of losses; pods that are lost together may count as one."""
    last_reason: str
    """The reason for the last loss in one word, such as OOMKilled, Evicted or NodeLost."""
    last_pod: str | None = None
    """Name of the last lost pod; missing if it was deleted before the operator saw the reason."""
    last_time: Time
    """The time when the operator saw it."""


class Notification(StrictModel):
    """One event for one receiver."""

    id: str
    """Identifies the notification; every attempt to deliver it has the same."""
    receiver: Count
    """The receiver's position in `spec.notify`, from 0."""
    event: str
    """The phase that the job entered, Interrupted, or Waiting."""
    time: Time
    """The time of the event."""
    reason: str
    """The job's reason at that time, in one word."""
    message: str = ""
    """The job's message at that time."""
    state: Literal["Pending", "Sent", "Failed"] = "Pending"
    """Pending: not delivered yet; Failed: given up."""
    error: str | None = None
    """Why the last attempt failed."""


class TrainJobStatus(StrictModel):
    """The job's current state."""

    phase: Phase | None = None
    """The job's phase; Succeeded and Failed are final."""
    reason: str | None = None
    """The reason for the phase, in one word."""
    message: str | None = None
    """The reason for the phase, for people."""
    conditions: list[Condition] = []
    """Conditions for `kubectl wait` and for tools that use kstatus."""
    observed_generation: int | None = None
    """The spec's generation that this status applies to."""
    start_time: Time | None = None
    """The time when the job was first allowed to start, accepted or not, shifted by its time in a queue since then;
    `deadlines.total` counts from here."""
    completion_time: Time | None = None
    """The time when the job ended."""
    attempt: Count | None = None
    """The current attempt, from 1."""
    ray_job_name: str | None = None
    """The job's RayJob."""
    ray_cluster_name: str | None = None
    """The current attempt's RayCluster."""
    head_pod_uid: Annotated[str | None, Field(alias="headPodUID")] = None
    """UID of that RayCluster's head pod, the only pod that may write `training`."""
    dashboard_url: Annotated[str | None, Field(alias="dashboardURL")] = None
    """Ray's dashboard, within the cluster."""
    storage: Storage | None = None
    """The storage of the run: `spec.storage`, or the operator's default at the time when the job was first accepted."""
    workers: WorkersStatus | None = None
    """The worker processes."""
    waiting_since: Time | None = None
    """The time since which the job has been waiting for pods, for a queue, for its next attempt, or for somebody to
    correct something; missing if it does not wait."""
    waiting: list[Waiting] = []
    """The reasons why pods are not running."""
    interruptions: Interruptions | None = None
    """Pods lost during training."""
    notifications: list[Notification] = []
    """The latest notifications (`spec.notify`), the oldest first."""
    training: TrainingStatus | None = None
    """Progress reported by the training process."""


def read_status(body: Mapping[str, Any]) -> tuple[TrainJobStatus, list[str]]:
    """The status of the TrainJob `body`, and its problems. Fields of another version and unreadable fields count as
    absent."""
    found: dict[str, Any] = dict(body.get("status") or {})
    try:
        return TrainJobStatus.model_validate(found, extra="ignore"), []
    except ValidationError as error:
        for field, *inner in (problem["loc"] for problem in error.errors()):
            if field == "training" and inner and isinstance(found.get("training"), dict):
                found["training"] = {name: value for name, value in found["training"].items() if name != inner[0]}
            else:
                found.pop(str(field), None)
        return TrainJobStatus.model_validate(found, extra="ignore"), [f"status cannot be read: {problems(error)}"]


def problems(error: ValidationError) -> str:
    """All problems in one line."""
    return "; ".join(f"{'.'.join(map(str, part['loc']))}: {part['msg']}" for part in error.errors())
