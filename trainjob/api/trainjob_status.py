"""`status`: what the cluster says of a TrainJob. The operator writes all of it but `training`."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from trainjob.api.training_status import Time, TrainingStatus
from trainjob.api.trainjob import Storage
from trainjob.schema.base import StrictModel

Phase = Literal["Pending", "Starting", "Running", "Retrying", "Suspended", "Succeeded", "Failed"]
ConditionType = Literal["Accepted", "Complete", "Failed", "Suspended", "Reconciling", "Stalled", "Ready"]
Count = Annotated[int, Field(ge=0)]


class Condition(StrictModel):
    """A Kubernetes condition."""

    type: ConditionType
    """Accepted: the operator could make a RayJob of it. Complete, Failed and Suspended: the phase. Reconciling: the job
    is on its way. Stalled: nothing happens before somebody changes something. Ready: the model is trained."""
    status: Literal["True", "False", "Unknown"]
    """Whether it holds."""
    reason: str
    """Why, in one word."""
    message: str = ""
    """Why, for people."""
    last_transition_time: Time
    """When `status` last changed."""
    observed_generation: int | None = None
    """The spec's generation that this is about."""


class WorkersStatus(StrictModel):
    """The worker processes."""

    desired: Count
    """Asked for."""
    ready: Count
    """In pods that are ready."""


class Waiting(StrictModel):
    """Why pods of the job are not running."""

    reason: str
    """In one word, such as Unschedulable or ImagePullBackOff."""
    pods: Count
    """How many pods this holds back; 0 where they could not even be made."""
    message: str = ""
    """The cluster's own words."""


class Interruptions(StrictModel):
    """Losses of pods in the midst of training, which then went on from its latest checkpoint in the same attempt."""

    count: Count
    """How many there have been; pods that are lost together may count as one."""
    last_reason: str
    """Why the last pod was lost, in one word, such as OOMKilled, Evicted or NodeLost."""
    last_pod: str | None = None
    """Its name; missing where it was gone before the operator saw why."""
    last_time: Time
    """When the operator saw it."""


class TrainJobStatus(StrictModel):
    """How the job is doing."""

    phase: Phase | None = None
    """Where the job stands; Succeeded and Failed are final."""
    reason: str | None = None
    """Why it stands there, in one word."""
    message: str | None = None
    """Why it stands there, for people."""
    conditions: list[Condition] = []
    """For `kubectl wait`, and for tools that judge by kstatus' rules."""
    observed_generation: int | None = None
    """The spec's generation that this status is about."""
    start_time: Time | None = None
    """When the job was first allowed to start, whether or not it was accepted, moved on by its time in a queue since;
    `deadlines.total` counts from here."""
    completion_time: Time | None = None
    """When the job ended."""
    attempt: Count | None = None
    """The current attempt, from 1."""
    ray_job_name: str | None = None
    """The job's RayJob."""
    ray_cluster_name: str | None = None
    """The current attempt's RayCluster."""
    head_pod_uid: Annotated[str | None, Field(alias="headPodUID")] = None
    """UID of that RayCluster's head pod, which alone may write `training`."""
    dashboard_url: Annotated[str | None, Field(alias="dashboardURL")] = None
    """Ray's dashboard, within the cluster."""
    storage: Storage | None = None
    """Where the run is kept: `spec.storage`, or the operator's default of the time when the job was first accepted."""
    workers: WorkersStatus | None = None
    """The worker processes."""
    waiting: list[Waiting] = []
    """Why pods are not running."""
    interruptions: Interruptions | None = None
    """Losses of pods in the midst of training."""
    training: TrainingStatus | None = None
    """What the training process says of itself."""


def read_status(body: Mapping[str, Any]) -> tuple[TrainJobStatus, list[str]]:
    """The status of the TrainJob `body`, and what is wrong with it. Fields of another version, and those that cannot be
    read, count as absent."""
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
