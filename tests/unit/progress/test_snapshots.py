"""The driver's snapshots, from the first to the last."""

import pytest

from trainjob.api.training_status import Failure, TrainingStatus
from trainjob.errors import DataError, StorageError, StorageUnreachable, TransientError, UserError, is_transient
from trainjob.launch.worker_errors import WorkerError, failure_of
from trainjob.progress.snapshots import Snapshots

TRAINING = TrainingStatus(stage="Training", message="continues from a", step=7, eta=9.0, metrics={"f1": 0.5})


@pytest.fixture
def seen() -> list[TrainingStatus]:
    return []


@pytest.fixture
def snapshots(seen: list[TrainingStatus]) -> Snapshots:
    return Snapshots(seen.append)


def test_a_restart_keeps_what_the_run_has_come_to(snapshots: Snapshots, seen: list[TrainingStatus]):
    snapshots.add(TRAINING)
    snapshots.add(TrainingStatus(stage="Starting", message="worker 1 failed; starting again"))
    assert (seen[-1].stage, seen[-1].message) == ("Starting", "worker 1 failed; starting again")
    assert (seen[-1].step, seen[-1].metrics, seen[-1].eta) == (7, {"f1": 0.5}, None)


def test_the_last_word_has_what_is_known_and_is_the_last(snapshots: Snapshots, seen: list[TrainingStatus]):
    failure = Failure(exception="ValueError", message="no")
    snapshots.add(TRAINING)
    snapshots.end(eta=None, failure=failure)
    snapshots.add(TRAINING)
    assert seen == [TRAINING, TRAINING.model_copy(update={"eta": None, "failure": failure})]


def test_a_workers_failure_is_told_with_its_traceback():
    failure = failure_of(WorkerError(1, "ValueError", "no such class", "Traceback …", 0.0), True)
    assert (failure.rank, failure.exception, failure.message) == (1, "ValueError", "no such class")
    assert (failure.traceback, failure.retryable) == ("Traceback …", True)


def test_a_mistake_is_told_without_a_traceback():
    failure = failure_of(StorageError("s3://runs: there is no such bucket"), False)
    assert (failure.rank, failure.exception, failure.traceback) == (None, "StorageError", "")
    assert (failure.message, failure.retryable) == ("s3://runs: there is no such bucket", False)


def test_any_other_error_is_told_with_the_drivers_traceback():
    with pytest.raises(KeyError) as raised:
        _ = {}["key"]
    failure = failure_of(raised.value, True)
    assert (failure.rank, failure.exception, failure.message) == (None, "KeyError", "'key'")
    assert 'test_snapshots.py", line' in failure.traceback


@pytest.mark.parametrize(
    ("error", "may"),
    [
        (UserError("x"), False),
        (DataError("x"), False),
        (StorageError("x"), False),
        (StorageUnreachable("x"), True),
        (TransientError("x"), True),
        (WorkerError(0, "ValueError", "x", "", 0.0), True),
        (OSError("x"), True),
        (MemoryError(), True),
    ],
)
def test_a_mistake_of_the_users_does_not_pass(error: Exception, may: bool):
    assert is_transient(error) == may
