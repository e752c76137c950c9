"""A run's folder: who may use it, and how often the run has failed over all its drivers."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from trainjob.api import TrainJob
from trainjob.errors import PassingError, StorageError, UserError
from trainjob.runs.folder import Attempts, begin, count_failure, locked, retries_left, run_folder
from trainjob.storage import Folder


def trainjob(folder: Path, uid: str | None) -> TrainJob:
    document: dict[str, Any] = {
        "apiVersion": "trainjob.dev/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "job", "uid": uid},
        "spec": {
            "model": {"function": {"name": "train:loop"}},
            "storage": {"uri": str(folder)},
            "training": {"batchSize": 1},
            "retries": 3,
        },
    }
    return TrainJob.model_validate(document)


def test_failures_add_up_over_drivers(tmp_path: Path):
    job = trainjob(tmp_path, "11111111-2222")
    folder = run_folder(job)
    first = begin(folder, job)
    assert (first.count, first.failures) == (1, 0)
    assert [count_failure(folder), count_failure(folder)] == [1, 2]
    second = begin(folder, job)
    assert (second.count, second.failures, second.started) == (2, 2, first.started)


def test_a_failure_before_a_run_has_begun_is_the_first(tmp_path: Path):
    assert count_failure(Folder(str(tmp_path))) == 1


@pytest.mark.parametrize(
    ("uid", "failures", "left"), [("1", 0, 3), ("1", 2, 1), ("1", 3, 0), ("1", 9, 0), (None, 9, 3)]
)
def test_a_cluster_has_only_the_retries_that_are_left(tmp_path: Path, uid: str | None, failures: int, left: int):
    attempts = Attempts(started=datetime.now(UTC), count=5, failures=failures)
    assert retries_left(trainjob(tmp_path, uid), attempts) == left


def test_one_run_at_a_time(tmp_path: Path):
    folder = Folder(str(tmp_path / "runs" / "job"))
    with locked(folder), pytest.raises(PassingError, match="this run is under way in another process"), locked(folder):
        pass
    with locked(folder):
        pass


def test_storage_that_cannot_be_written(tmp_path: Path):
    (tmp_path / "file").touch()
    folder = run_folder(trainjob(tmp_path / "file", None))
    with pytest.raises(StorageError, match=str(tmp_path / "file")), locked(folder):
        pass


def test_only_the_trainjob_that_began_a_run_may_continue_it(tmp_path: Path):
    job = trainjob(tmp_path, None)
    folder = run_folder(job)
    begin(folder, job)
    assert begin(folder, job.model_copy(update={"spec": job.spec.model_copy(update={"retries": 9})})).count == 2
    training = job.spec.training.model_copy(update={"seed": 1, "epochs": 3})
    other = job.model_copy(update={"spec": job.spec.model_copy(update={"training": training})})
    with pytest.raises(UserError) as error:
        begin(folder, other)
    message = str(error.value)
    assert "spec.training.seed: 42 → 1" in message
    assert "spec.training.epochs: 10 → 3" in message
    assert message.count("→") == 2
    assert "--fresh" in message
