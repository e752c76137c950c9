"""Reports of a training process, and their effect."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cluster.jobs import Jobs
from trainjob.api import TrainJob
from trainjob.api.training_status import TrainingStatus
from trainjob.progress.api_server import ApiServer, Operation


@dataclass(frozen=True)
class CountingServer(ApiServer):
    """Counts what is asked of it."""

    requests: list[str] = field(default_factory=list[str])

    def patch(self, path: str, operations: Sequence[Operation], manager: str) -> bytes:
        self.requests.append(path)
        return super().patch(path, operations, manager)


def train_job(jobs: Jobs) -> TrainJob:
    found = jobs.get("trainjobs")
    assert found is not None
    return TrainJob.model_validate({**found, "status": None})


def training(jobs: Jobs) -> dict[str, Any]:
    return jobs.status().get("training", {})


def at_step(step: int) -> TrainingStatus:
    return TrainingStatus(stage="Training", step=step, steps=100, percent=float(step))
