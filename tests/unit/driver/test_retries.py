"""Retries after a failure, and their number."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

import pytest

from trainjob.api import TrainJob
from trainjob.driver.retries import is_retryable, may_retry, with_retries
from trainjob.driver.run import run
from trainjob.errors import StorageUnreachable, Superseded, TransientError, UserError
from trainjob.launch.worker_errors import WorkerError
from trainjob.runs.attempts import Attempts
from trainjob.runs.folder import begin_attempt, run_folder
from trainjob.runs.owner import Owner

DIED = WorkerError(0, "WorkerDied", "was killed by signal 9", "", 0.0)
UID = "0f0e0d0c-0000-0000-0000-000000000000"


def trainjob(storage: Path, retries: int, uid: str | None = None) -> TrainJob:
    return TrainJob.model_validate(
        {
            "apiVersion": "trainjob.dev/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": "run"} | ({"uid": uid} if uid else {}),
            "spec": {
                "model": {"imageClassifier": {"mlp": {}}},
                "dataset": {"train": {"uri": "/data"}},
                "retries": retries,
                "storage": {"uri": str(storage)},
            },
        }
    )


def failing(times: int, error: Exception = DIED) -> Callable[[], str]:
    """Training that succeeds after so many failures."""
    errors = [error] * times

    def train() -> str:
        if errors:
            raise errors.pop()
        return "trained"

    return train


def trained(train: Callable[[], str], job: TrainJob, attempts: Attempts, told: list[Exception] | None = None) -> str:
    on_retry = (lambda _: None) if told is None else told.append
    return with_retries(train, job, run_folder(job), attempts, on_retry, lambda: job.spec.retries)


def losing_workers(run: Path, checkpoints: list[str], error: Exception = DIED) -> Callable[[], str]:
    """Training that loses a worker after each of these checkpoints, "" for none."""
    left = iter(checkpoints)

    def train() -> str:
        for name in left:
            if name:
                (run / "checkpoints" / name).mkdir(parents=True)
            raise error
        return "trained"

    return train


@pytest.mark.parametrize(
    ("error", "checkpoints", "failures"),
    [
        (DIED, [""], 0),
        (DIED, ["", "epoch-0001-step-00000010", "epoch-0002-step-00000020"], 0),
        (
            WorkerError(1, "RuntimeError", "[/gloo/transport] Connection reset", "", 0.0),
            ["epoch-0001-step-00000010"],
            0,
        ),
        (DIED, ["", ""], 0),
        (DIED, ["", "", ""], 1),
        (DIED, ["epoch-0001-step-00000010", "", "epoch-0002-step-00000020", ""], 0),
        (DIED, ["epoch-0001-step-00000010", "", "", "epoch-0002-step-00000020"], 1),
        (WorkerError(0, "MemoryError", "", "", 0.0), ["epoch-0001-step-00000010"], 1),
        (TransientError("no cluster"), [""], 1),
    ],
)
def test_an_elastic_job_may_lose_workers_while_it_comes_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, checkpoints: list[str], failures: int
):
    monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    job = trainjob(tmp_path, retries=1, uid=UID)
    workers = job.spec.workers.model_copy(update={"count": 4, "minimum": 3})
    job = job.model_copy(update={"spec": job.spec.model_copy(update={"workers": workers})})
    attempts, told = begin_attempt(run_folder(job), job), list[Exception]()
    assert trained(losing_workers(Path(run_folder(job).uri), checkpoints, error), job, attempts, told) == "trained"
    assert told == [error] * len(checkpoints)
    assert begin_attempt(run_folder(job), job).failures == failures


@pytest.mark.parametrize(
    ("error", "failures", "retries", "again"),
    [
        (DIED, 1, 0, False),
        (DIED, 1, 1, True),
        (DIED, 2, 1, False),
        (StorageUnreachable("away"), 1, 1, True),
        (UserError("a mistake"), 1, 3, False),
    ],
)
def test_the_rule(error: Exception, failures: int, retries: int, again: bool):
    assert may_retry(error, failures, retries) is again


@pytest.mark.parametrize("error", [DIED, TransientError("busy")])
def test_each_retry_is_announced(tmp_path: Path, error: Exception):
    told: list[Exception] = []
    attempts = Attempts(started=datetime.now(UTC), count=1)
    assert trained(failing(2, error), trainjob(tmp_path, 2), attempts, told) == "trained"
    assert told == [error, error]


@pytest.mark.parametrize("error", [UserError("a mistake"), ValueError("a bug of the driver")])
def test_what_will_not_pass_is_not_tried_again(tmp_path: Path, error: Exception):
    told: list[Exception] = []
    attempts = Attempts(started=datetime.now(UTC), count=1)
    with pytest.raises(type(error)):
        trained(failing(1, error), trainjob(tmp_path, 3), attempts, told)
    assert told == []


def test_on_a_cluster_failures_count_over_all_drivers(tmp_path: Path):
    job = trainjob(tmp_path, 2, UID)
    first = begin_attempt(run_folder(job), job)
    assert trained(failing(1), job, first) == "trained"  # the first failure
    assert is_retryable(job, run_folder(job), DIED, job.spec.retries)  # the second, which ends this driver
    second = begin_attempt(run_folder(job), job)
    assert second.failures == 2
    with pytest.raises(WorkerError):
        trained(failing(1), job, second)
    assert not is_retryable(job, run_folder(job), DIED, job.spec.retries)  # the third


def test_on_a_laptop_each_command_starts_from_none(tmp_path: Path):
    job = trainjob(tmp_path, 1)
    for _ in range(2):
        attempts = begin_attempt(run_folder(job), job)
        assert trained(failing(1), job, attempts) == "trained"
        assert is_retryable(job, run_folder(job), DIED, job.spec.retries)


def test_a_storage_that_is_away_is_no_verdict(tmp_path: Path):
    job = trainjob(tmp_path, 0, UID)
    assert is_retryable(job, run_folder(job), StorageUnreachable("away"), 0)


def test_a_driver_that_was_superseded_counts_no_failure(tmp_path: Path):
    job = trainjob(tmp_path, 3, UID)
    owner = Owner(run_folder(job))
    owner.claim()
    attempts = begin_attempt(owner.run, job)
    Owner(run_folder(job)).claim()
    with pytest.raises(Superseded):
        with_retries(failing(1), job, owner.run, attempts, lambda _: None, lambda: 3)
    with pytest.raises(Superseded):
        is_retryable(job, owner.run, DIED, 3)
    assert begin_attempt(run_folder(job), job).failures == 0


@pytest.mark.parametrize(("at_first", "by_then", "succeeds"), [(0, 3, True), (3, 0, False)])
def test_retries_that_are_changed_in_mid_run_count(tmp_path: Path, at_first: int, by_then: int, succeeds: bool):
    job, allowed = trainjob(tmp_path, at_first, UID), [at_first]

    def train() -> str:
        allowed[:] = [by_then]
        return fails()

    fails = failing(2)
    attempts = begin_attempt(run_folder(job), job)
    with nullcontext() if succeeds else pytest.raises(WorkerError):
        with_retries(train, job, run_folder(job), attempts, lambda _: None, lambda: allowed[0])


@pytest.mark.parametrize("changed", [{"dataset": {"train": {"uri": "/other"}}}, {"workers": {"gpus": 1}}])
def test_a_trainjob_that_is_refused_leaves_the_run_to_its_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, object]
):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    job = trainjob(tmp_path, 0)
    owner = Owner(run_folder(job))
    owner.claim()
    begin_attempt(owner.run, job)
    owner.run.write("metrics.jsonl", b"")
    document = job.model_dump(by_alias=True, exclude_none=True)
    document["spec"] |= changed
    with pytest.raises(UserError, match=r"started with another spec|PyTorch cannot use any GPU"):
        run(TrainJob.model_validate(document), source=tmp_path, started=time.time())
    owner.run.write("summary.json", b"{}")  # it still may
