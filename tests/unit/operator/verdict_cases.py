"""Verdicts that are expected of what a cluster holds of a job."""

from dataclasses import dataclass, field
from typing import Any

from operator_objects import Object, pod, trainjob

from trainjob.api.training_status import Failure, TrainingStatus
from trainjob.api.trainjob_status import TrainJobStatus
from trainjob_operator.errors import RayJobError
from trainjob_operator.verdict import Observed, Verdict, verdict_of

ENDED = "2026-01-01T11:59:58Z"
HEAD = {"ray.io/cluster": "job-abcde", "ray.io/node-type": "head"}
OTHER_HEAD = {"ray.io/cluster": "job-earlier", "ray.io/node-type": "head"}
KILLED = "the driver was killed, usually because the head pod ran out of memory: "


def failed(rank: int | None, exception: str, message: str, *, retryable: bool = True) -> TrainingStatus:
    failure = Failure(rank=rank, exception=exception, message=message, retryable=retryable)
    return TrainingStatus(stage="Training", failure=failure)


def head(*, labels: Object = HEAD, phase: str = "Running", **container: Any) -> Object:
    return pod("head", labels=labels, phase=phase, containerStatuses=[{"name": "ray-head", **container}])


def submitter(exit_code: int, message: str) -> Object:
    ended = {"terminated": {"exitCode": exit_code, "message": message}}
    container = {"name": "ray-job-submitter", "image": "mine:1", "state": ended}
    return pod(f"job-{exit_code}", labels={"job-name": "job"}, phase="Failed", containerStatuses=[container])


OUT_OF_MEMORY = head(lastState={"terminated": {"reason": "OOMKilled"}})


@dataclass(frozen=True)
class Case:
    ray_job: Object | None
    verdict: Verdict
    before: TrainJobStatus = field(default_factory=TrainJobStatus)
    pods: tuple[Object, ...] = ()
    workloads: tuple[Object, ...] = ()
    error: RayJobError | None = None
    spec: Object = field(default_factory=dict[str, Any])
    metadata: Object | None = None

    def check(self) -> None:
        observed = Observed(self.ray_job, pods=self.pods, workloads=self.workloads, error=self.error)
        assert verdict_of(trainjob(self.metadata, **self.spec), self.before, observed) == self.verdict


def status(reason: str = "", phase: Any = "Running", message: str | None = None, **more: Any) -> TrainJobStatus:
    return TrainJobStatus(phase=phase, reason=reason, message=message, **more)
