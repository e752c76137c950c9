"""Why a job waits or has failed, and what its user can do."""

from collections.abc import Iterator
from typing import NamedTuple

from trainjob.api.status_reasons import explanation
from trainjob.api.trainjob_status import TrainJobStatus
from trainjob.cluster.job import ClusterJob

_NOTHING = "nothing"


class Cause(NamedTuple):
    """Something that holds a job up, or has ended it."""

    reason: str
    meaning: str
    """The meaning of the reason; empty if this version does not know it."""
    message: str
    """The cluster's message."""
    remedy: str
    """The remedy; empty if waiting is all there is to do."""


def causes(status: TrainJobStatus) -> list[Cause]:
    """The causes that delay the job or have ended it; none for a job that trains, has succeeded or was suspended by
    its user."""
    found: dict[str, Cause] = {}
    for reason, message in _reasons(status):
        if reason not in found:
            known = explanation(reason)
            remedy = known.remedy if known is not None else ""
            meaning = known.meaning if known is not None else ""
            found[reason] = Cause(reason, meaning, message, "" if remedy == _NOTHING else remedy)
    return list(found.values())


def _reasons(status: TrainJobStatus) -> Iterator[tuple[str, str]]:
    for waiting in status.waiting:
        held = f"{waiting.pods} pod{'s' if waiting.pods > 1 else ''}: " if waiting.pods else ""
        yield waiting.reason, f"{held}{waiting.message}"
    is_held_up = status.phase in ("Pending", "Starting", "Retrying", "Failed") or status.reason == "Queued"
    if status.reason is not None and is_held_up:
        yield status.reason, status.message or ""
    for condition in status.conditions:
        if condition.type == "Accepted" and condition.status == "False":
            yield condition.reason, condition.message


def next_steps(job: ClusterJob, options: str = "") -> list[str]:
    """Commands that are useful in the job's phase; `options` name the cluster and namespace."""
    name = f"{job.name}{options}"
    best = job.status.training.best_checkpoint if job.status.training is not None else None
    match job.status.phase:
        case "Succeeded" if best is not None and best.uri:
            return [f"trainjob predict {name} DATA", f"trainjob pull {name}"]
        case "Succeeded":
            return [f"trainjob logs {name}", f"trainjob pull {name} --what all"]
        case "Failed":
            return [
                f"trainjob logs {name}   # the driver's log",
                f"trainjob submit FILE --name-suffix{options}   # try again",
            ]
        case "Suspended" if job.status.reason == "Suspended":
            return [f"trainjob resume {name}"]
        case "Running" | "Retrying":
            return [f"trainjob logs {name} -f"]
        case _:
            return [f"trainjob wait {name}"]
