"""A run's folder: who may use it, and how often the run has failed over all its drivers."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainjob.api import TrainJob
from trainjob.api.defaults import with_defaults
from trainjob.api.load import with_overrides
from trainjob.errors import Notice, StorageError, TransientError, UserError
from trainjob.runs.attempts import count_failure
from trainjob.runs.folder import begin_attempt, check_exists, clear_results, read_job, read_job_yaml, run_folder
from trainjob.runs.history import History
from trainjob.runs.lock import locked
from trainjob.storage import Folder


def trainjob(folder: Path, uid: str | None, spec: dict[str, Any] | None = None) -> TrainJob:
    document: dict[str, Any] = {
        "apiVersion": "trainjob.dev/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "job", "uid": uid},
        "spec": {
            "model": {"function": {"name": "train:loop"}},
            "storage": {"uri": str(folder)},
            "training": {"batchSize": 1},
            "retries": 3,
        }
        | (spec or {}),
    }
    return TrainJob.model_validate(document)


def test_failures_add_up_over_drivers(tmp_path: Path):
    job = trainjob(tmp_path, "11111111-2222")
    folder = run_folder(job)
    first = begin_attempt(folder, job)
    assert (first.count, first.failures) == (1, 0)
    assert [count_failure(folder), count_failure(folder)] == [1, 2]
    second = begin_attempt(folder, job)
    assert (second.count, second.failures, second.started) == (2, 2, first.started)


def test_a_failure_before_a_run_has_begun_is_the_first(tmp_path: Path):
    assert count_failure(Folder(str(tmp_path))) == 1


def test_one_run_at_a_time(tmp_path: Path):
    folder = Folder(str(tmp_path / "runs" / "job"))
    with (
        locked(folder),
        pytest.raises(TransientError, match="another process is running it or copying it"),
        locked(folder),
    ):
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
    begin_attempt(folder, job)
    folder.write("metrics.jsonl", b"")
    assert begin_attempt(folder, job.model_copy(update={"spec": job.spec.model_copy(update={"retries": 9})})).count == 2
    training = job.spec.training.model_copy(update={"seed": 1, "epochs": 3})
    other = job.model_copy(update={"spec": job.spec.model_copy(update={"training": training})})
    with pytest.raises(UserError) as error:
        begin_attempt(folder, other)
    message = str(error.value)
    assert "spec.training.seed: 42 → 1" in message
    assert "spec.training.epochs: 10 → 3" in message
    assert message.count("→") == 2
    assert "--fresh" in message


def test_a_run_of_a_version_without_some_fields_continues_with_their_defaults(tmp_path: Path):
    job = trainjob(tmp_path, None)
    folder = run_folder(job)
    begin_attempt(folder, job)
    document = job.model_dump(mode="json", by_alias=True, exclude_defaults=True) | {"kind": job.kind}
    folder.write("trainjob.yaml", yaml.safe_dump(document | {"apiVersion": job.api_version}).encode())
    folder.write("metrics.jsonl", b"")
    assert begin_attempt(folder, job).count == 2
    training = job.spec.training.model_copy(update={"epochs": 3})
    with pytest.raises(UserError, match=r"another spec:\n  spec\.training\.epochs: 10 → 3\n"):
        begin_attempt(folder, job.model_copy(update={"spec": job.spec.model_copy(update={"training": training})}))


def test_a_run_of_several_labels_continues_that_has_the_earlier_default_of_their_loss(tmp_path: Path):
    dataset = {"train": {"uri": "a.csv"}, "text": ["text"], "labels": ["a", "b"]}
    job = with_defaults(trainjob(tmp_path, None, {"model": {"textClassifier": {"encoder": {}}}, "dataset": dataset}))
    folder = run_folder(job)
    begin_attempt(folder, job)
    document = yaml.safe_load(folder.read("trainjob.yaml"))
    document["spec"]["model"]["textClassifier"]["loss"] = {"crossEntropy": {}}
    folder.write("trainjob.yaml", yaml.safe_dump(document).encode())
    folder.write("metrics.jsonl", b"")
    assert begin_attempt(folder, job).count == 2
    assert read_job(folder) == with_overrides(read_job_yaml(folder), "trainjob.yaml", []) == job


@pytest.mark.parametrize(
    ("name", "is_protected"),
    [
        ("logs/attempt-1/rank-0.log", False),
        ("fitted/tokenizer.json", False),
        ("fitted/sources.json", False),
        ("fitted/split.json", True),
        ("metrics.jsonl", True),
        ("checkpoints/epoch-0001-step-00000010/checkpoint.json", True),
        ("checkpoint_2026-11-28_00-00-00.000000/weights.pt", True),
        ("trials/0001/trial.json", True),
    ],
)
def test_a_run_that_has_come_to_nothing_takes_another_spec(name: str, is_protected: bool, tmp_path: Path):
    job = trainjob(tmp_path, None)
    folder = run_folder(job)
    begin_attempt(folder, job)
    folder.write(name, b"")
    training = job.spec.training.model_copy(update={"seed": 1})
    other = job.model_copy(update={"spec": job.spec.model_copy(update={"training": training})})
    if is_protected:
        with pytest.raises(UserError, match="started with another spec"):
            begin_attempt(folder, other)
        assert read_job(folder) == job
        return
    assert begin_attempt(folder, other).count == 2
    assert read_job(folder) == other
    assert not folder.exists("fitted")
    folder.write("metrics.jsonl", b"")
    with pytest.raises(UserError, match=r"seed: 1 → 42"):
        begin_attempt(folder, job)


@pytest.mark.parametrize(("old", "new"), [("fail", "drop"), ("drop", "fail")])
def test_bad_rows_may_be_judged_anew_until_something_is_trained(old: str, new: str, tmp_path: Path):
    def job_of(on_bad_rows: str) -> TrainJob:
        dataset = {"train": {"uri": "/data/rows.csv"}, "text": ["text"], "label": "label", "onBadRows": on_bad_rows}
        return trainjob(tmp_path, None, {"model": {"textClassifier": {"encoder": {}}}, "dataset": dataset})

    folder = run_folder(job_of(old))
    begin_attempt(folder, job_of(old))
    folder.write("fitted/split.json", b"")
    begin_attempt(folder, job_of(old))
    assert folder.exists("fitted")
    begin_attempt(folder, job_of(new))
    assert read_job(folder) == job_of(new)
    assert not folder.exists("fitted"), "the rows are read again"
    folder.write("checkpoints/epoch-0001-step-00000010/checkpoint.json", b"")
    with pytest.raises(UserError, match=f"onBadRows: {new} → {old}"):
        begin_attempt(folder, job_of(old))


def test_a_folder_that_is_no_run_is_left_alone(tmp_path: Path):
    job = trainjob(tmp_path, None)
    for name in ("job/data.csv", "job/model/weights.bin", "job/trainjob.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text("mine")
    message = r"is not a run's folder: .* found data\.csv, model, trainjob\.yaml. Nothing was touched: choose another"
    with pytest.raises(UserError, match=message), locked(run_folder(job)):
        raise AssertionError("the folder was taken")
    assert sorted(path.name for path in (tmp_path / "job").iterdir()) == ["data.csv", "model", "trainjob.yaml"]


def test_an_empty_or_a_new_folder_is_taken(tmp_path: Path):
    job = trainjob(tmp_path, None)
    folder = run_folder(job)
    with locked(folder):
        pass
    with locked(folder):  # it holds a lock's file by now
        begin_attempt(folder, job)


def test_only_a_runs_own_files_are_cleared(tmp_path: Path):
    job = trainjob(tmp_path, None)
    folder = run_folder(job)
    begin_attempt(folder, job)
    own = ("summary.json", "checkpoints/epoch-1/trainer.pt", "checkpoint_2026-01-01/model.pt", "model/config.json")
    for name in (*own, "data/rows.csv", "notes.md"):
        folder.write(name, b"x")
    with pytest.warns(Notice, match=r"data, notes\.md stay: they do not belong to the run"):
        clear_results(folder)
    assert folder.list() == ["data", "notes.md"]


def test_the_file_that_tells_a_run_is_the_last_to_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The remains of an interrupted --fresh can then still be cleared."""
    job = trainjob(tmp_path, None)
    folder = run_folder(job)
    begin_attempt(folder, job)
    for name in ("summary.json", "model/config.json"):
        folder.write(name, b"x")
    deleted: list[str] = []
    monkeypatch.setattr(Folder, "delete", lambda _, name: deleted.append(name))
    clear_results(folder)
    assert (deleted[0], deleted[-1]) == ("summary.json", "attempts.json")


def test_damaged_attempts_are_said(tmp_path: Path):
    job = trainjob(tmp_path, None)
    folder = run_folder(job)
    folder.write("attempts.json", b'{"count": "many')
    with pytest.raises(UserError, match=r"job/attempts\.json is damaged"):
        begin_attempt(folder, job)


def test_a_folder_that_is_not_there_for_a_moment_is_there(tmp_path: Path):
    """For example on a server that has just started."""
    job = trainjob(tmp_path, None)
    folder = run_folder(job)
    begin_attempt(folder, job)
    away, said = Path(folder.uri).rename(tmp_path / "away"), list[str]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trainjob.runs.folder.time.sleep", lambda _: away.exists() and away.rename(folder.uri))
        check_exists(replace(folder, on_wait=said.append))
    assert said == [f"waiting for storage: {folder.uri}/attempts.json is missing", ""]


def test_a_run_whose_folder_is_removed_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("trainjob.runs.folder.POLL_SECONDS", 0)
    job = trainjob(tmp_path, None)
    folder = run_folder(job)
    begin_attempt(folder, job)
    history = History(folder, tmp_path)
    history.add("step", 1, 1, {"loss": 1.0})
    check_exists(folder)
    shutil.rmtree(folder.uri)
    with pytest.raises(UserError, match=r"job: the run's folder, .* was removed during the run"):
        history.flush()
    assert not Path(folder.uri).exists()
