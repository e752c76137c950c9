"""README's TrainJob on two pods with its data in MinIO: one that nothing disturbs, and one that loses its pods."""

import json
from collections.abc import Generator
from dataclasses import dataclass

import pytest
import yaml

from cluster.client import Cluster
from cluster.jobs import eventually
from e2e.object_store import ObjectStore
from e2e.train_jobs import PROJECTS, Status, TrainJobs, namespace, resumed_from, until_step

pytestmark = pytest.mark.core

NAME = "project-tags"
STEPS_BETWEEN_CHECKPOINTS = 10


@dataclass(frozen=True)
class FollowedJob:
    """A job that has succeeded, and what its status said until then."""

    jobs: TrainJobs
    phases: list[str]
    early: Status
    """While both workers trained."""
    later: Status
    """A step or more after that."""
    end: Status


@pytest.fixture(scope="module")
def text_job(cluster: Cluster, store: ObjectStore, request: pytest.FixtureRequest) -> Generator[FollowedJob]:
    """The job that nothing disturbs."""
    with namespace(cluster, store, request.session, "text_job") as jobs:
        jobs.kubectl("apply", "--filename=-", stdin=jobs.readme())
        with jobs.phases(NAME) as phases:
            early = jobs.until_true(_both_train, "steps of both workers", NAME)
            step = early["training"]["step"]
            later = jobs.until_true(lambda status: status["training"]["step"] > step, f"a step after {step}", NAME)
            end = jobs.until_phase("Succeeded", NAME)
            eventually(lambda: phases[-1:] == ["Succeeded"], 30, lambda: f"kubectl's watch saw {phases}")
        yield FollowedJob(jobs, phases, early, later, end)


def _both_train(status: Status) -> bool:
    return status.get("training", {}).get("step", 0) > 0 and status["workers"] == {"desired": 2, "ready": 2}


def test_the_status_tells_phases_progress_and_scores(text_job: FollowedJob) -> None:
    assert text_job.phases == ["Pending", "Starting", "Running", "Succeeded"]
    early, later = text_job.early["training"], text_job.later["training"]
    assert text_job.later["phase"] == "Running"
    assert later["stage"] in ("Training", "Evaluating")
    assert 0 < early["percent"] < later["percent"] < 100
    end = text_job.end["training"]
    assert (end["stage"], end["percent"], end["step"]) == ("Finished", 100, end["steps"])
    assert end["metrics"]["validation_f1"] > 0.5
    assert end["evaluation"]["validation_f1"] > 0.5
    text_job.jobs.kubectl("wait", "--for=condition=Complete", f"trainjob/{NAME}", "--timeout=30s")
    assert {"Created", "Started", "Succeeded"} <= set(text_job.jobs.events(NAME))


def test_what_a_finished_job_leaves_is_its_model_and_report_but_no_pod(text_job: FollowedJob) -> None:
    jobs = text_job.jobs
    predicted = jobs.store.trainjob("predict", text_job.end["training"]["bestCheckpoint"]["uri"], "--text", "red1 red2")
    assert "red" in predicted.stdout, predicted.stderr
    assert b"<html" in jobs.store.read(f"{jobs.run(NAME)}/report.html")
    rows = json.loads(jobs.store.read(f"{jobs.run(NAME)}/summary.json"))["rows"]
    assert rows["train"] + rows["validation"] == PROJECTS
    jobs.until_gone(NAME)


def test_a_job_that_loses_a_worker_and_then_its_head_ends_with_the_same_weights(
    jobs: TrainJobs, text_job: FollowedJob
) -> None:
    spec = yaml.safe_load(jobs.readme())["spec"]
    checkpoints = {"everySteps": STEPS_BETWEEN_CHECKPOINTS}
    jobs.create(**spec, storage=jobs.storage(), checkpoints=checkpoints, retries=2)
    before = until_step(jobs, 15)
    jobs.kill(jobs.pods("worker")[0])
    status = jobs.until_true(resumed_from, "training again")
    assert status["interruptions"]["count"] == 1
    assert "Interrupted" in jobs.events()
    first = resumed_from(status)
    assert first >= before - STEPS_BETWEEN_CHECKPOINTS
    assert status["attempt"] == 1
    until_step(jobs, first + STEPS_BETWEEN_CHECKPOINTS + 1)
    jobs.kill(jobs.pods("head")[0])
    assert jobs.until_phase("Retrying")["reason"] == "HeadLost"
    jobs.until_true(lambda status: resumed_from(status) > first, "training again")
    status = jobs.until_phase("Succeeded")
    lines = jobs.store.read(f"{jobs.run()}/metrics.jsonl").splitlines()
    steps = [record["step"] for record in map(json.loads, lines) if record["kind"] == "step"]
    assert steps == list(range(1, status["training"]["steps"] + 1))
    assert _weights(jobs, "job") == _weights(text_job.jobs, NAME)


def _weights(jobs: TrainJobs, name: str) -> bytes:
    return jobs.store.read(f"{jobs.run(name)}/model/model.safetensors")
