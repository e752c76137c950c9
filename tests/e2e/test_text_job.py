"""README's TrainJob on two pods with its data in MinIO: strangers try to get in, and a worker and the head are lost."""

import json
from collections.abc import Generator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from cluster.client import Cluster
from cluster.jobs import eventually
from e2e.object_store import ObjectStore
from e2e.stranger import REFUSED, intruded_head
from e2e.train_jobs import PROJECTS, Status, TrainJobs, namespace, resumed_from, until_step

pytestmark = pytest.mark.core

NAME = "project-tags"
STEPS_BETWEEN_CHECKPOINTS = 10


@dataclass(frozen=True)
class FollowedJob:
    """A job that has succeeded, and what its status said until then."""

    jobs: TrainJobs
    document: str
    phases: list[str]
    early: Status
    """While both workers trained."""
    later: Status
    """A step or more after that."""
    without_worker: Status
    """When it continued after losing a worker."""
    without_head: Status
    """When it continued after losing its head, too."""
    end: Status
    intrusions: list[tuple[str, str]]
    """Into its first head and into the second."""
    dashboard: str
    """The version that Ray's dashboard says to a browser."""


@pytest.fixture(scope="module")
def text_job(cluster: Cluster, store: ObjectStore, request: pytest.FixtureRequest) -> Generator[FollowedJob]:
    with namespace(cluster, store, request.session, "text_job") as jobs:
        document = yaml.safe_load(jobs.readme())
        document["spec"] |= {
            "training": {"epochs": 3},
            "checkpoints": {"everySteps": STEPS_BETWEEN_CHECKPOINTS},
            "retries": 2,
        }
        manifest = yaml.safe_dump(document)
        jobs.kubectl("apply", "--filename=-", stdin=manifest)
        with jobs.phases(NAME) as phases:
            jobs.until_phase("Running", NAME)
            intrusions = [intruded_head(jobs, NAME, "stranger")]
            dashboard = jobs.ray_version(NAME)
            early = jobs.until_true(_both_train, "steps of both workers", NAME)
            step = early["training"]["step"]
            enough = max(step + 1, STEPS_BETWEEN_CHECKPOINTS + 5)
            later = jobs.until_true(lambda status: status["training"]["step"] >= enough, f"step {enough}", NAME)
            jobs.kill(jobs.pods("worker", NAME)[0])
            without_worker = jobs.until_true(resumed_from, "training again", NAME)
            first = resumed_from(without_worker)
            until_step(jobs, first + STEPS_BETWEEN_CHECKPOINTS + 1, NAME)
            jobs.kill(jobs.pods("head", NAME)[0])
            without_head = jobs.until_phase("Retrying", NAME)
            jobs.until_phase("Running", NAME)
            intrusions.append(intruded_head(jobs, NAME, "second-stranger"))
            jobs.until_true(lambda status: resumed_from(status) > first, "training again", NAME)
            end = jobs.until_phase("Succeeded", NAME)
            eventually(lambda: phases[-1:] == ["Succeeded"], 30, lambda: f"kubectl's watch saw {phases}")
        yield FollowedJob(
            jobs, manifest, phases, early, later, without_worker, without_head, end, intrusions, dashboard
        )


def _both_train(status: Status) -> bool:
    return status.get("training", {}).get("step", 0) > 0 and status["workers"] == {"desired": 2, "ready": 2}


def test_the_status_tells_phases_progress_and_scores(text_job: FollowedJob) -> None:
    assert text_job.phases[:4] == ["Pending", "Starting", "Running", "Retrying"]
    assert text_job.phases[-2:] == ["Running", "Succeeded"]
    early, later = text_job.early["training"], text_job.later["training"]
    assert text_job.later["phase"] == "Running"
    assert later["stage"] == "Training"
    assert 0 < early["percent"] < later["percent"] < 100
    end = text_job.end["training"]
    assert (end["stage"], end["percent"], end["step"]) == ("Finished", 100, end["steps"])
    assert end["metrics"]["validation_f1"] > 0.5
    assert end["evaluation"]["validation_f1"] > 0.5
    text_job.jobs.kubectl("wait", "--for=condition=Complete", f"trainjob/{NAME}", "--timeout=30s")
    assert {"Created", "Started", "Succeeded"} <= set(text_job.jobs.events(NAME))


def test_it_goes_on_from_its_checkpoints(text_job: FollowedJob) -> None:
    jobs, status = text_job.jobs, text_job.without_worker
    assert status["interruptions"]["count"] == 1
    assert status["attempt"] == 1
    assert resumed_from(status) >= text_job.later["training"]["step"] - STEPS_BETWEEN_CHECKPOINTS
    assert "Interrupted" in jobs.events(NAME)
    assert text_job.without_head["reason"] == "HeadLost"
    assert text_job.end["attempt"] == 1
    lines = jobs.store.read(f"{jobs.run(NAME)}/metrics.jsonl").splitlines()
    steps = [record["step"] for record in map(json.loads, lines) if record["kind"] == "step"]
    assert steps == list(range(1, text_job.end["training"]["steps"] + 1))


def test_a_stranger_is_refused(text_job: FollowedJob) -> None:
    for within, outside in text_job.intrusions:
        assert within == "401"  # it serves
        assert outside in REFUSED


def test_ray_shows_its_dashboard_to_a_browser_without_a_token(text_job: FollowedJob) -> None:
    assert text_job.dashboard == version("ray")
    assert "has ended (Succeeded" in text_job.jobs.trainjob("dashboard", NAME, code=1)


def test_the_doctor_finds_nothing_wrong(text_job: FollowedJob) -> None:
    found = {each["check"]: each for each in json.loads(text_job.jobs.trainjob("doctor", "--output", "json"))}
    assert [each for each in found.values() if each["state"] == "wrong"] == []
    assert found["storage"]["message"].endswith(": a pod has written, read and deleted a file")


def test_its_weights_are_those_of_a_local_run_that_nothing_disturbs(text_job: FollowedJob, tmp_path: Path) -> None:
    """Bit for bit, if the nodes have the same kind of processor as this machine."""
    jobs, file = text_job.jobs, tmp_path / "trainjob.yaml"
    file.write_text(text_job.document)
    done = jobs.store.trainjob("run", str(file), "--set", f"spec.storage.uri={tmp_path}/runs")
    assert done.returncode == 0, done.stderr
    own = tmp_path / "runs" / NAME / "model" / "model.safetensors"
    assert jobs.store.read(f"{jobs.run(NAME)}/model/model.safetensors") == own.read_bytes()


def test_what_a_finished_job_leaves_is_its_model_and_report_but_no_pod(text_job: FollowedJob) -> None:
    jobs = text_job.jobs
    predicted = jobs.store.trainjob("predict", text_job.end["training"]["bestCheckpoint"]["uri"], "--text", "red1 red2")
    assert "red" in predicted.stdout, predicted.stderr
    assert b"<html" in jobs.store.read(f"{jobs.run(NAME)}/report.html")
    rows = json.loads(jobs.store.read(f"{jobs.run(NAME)}/summary.json"))["rows"]
    assert rows["train"] + rows["validation"] == PROJECTS
    jobs.until_gone(NAME)
