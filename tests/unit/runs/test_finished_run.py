"""A run that has finished, when the same command is given again."""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from trainjob.api import TrainJob
from trainjob.errors import UserError
from trainjob.runs.folder import begin, run_folder
from trainjob.runs.summary import Hardware, Summary, TrainingWorkers
from trainjob.training.run import run


def finished(folder: Path) -> TrainJob:
    """A TrainJob whose run has finished."""
    document: dict[str, Any] = {
        "apiVersion": "trainjob.dev/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "job"},
        "spec": {"model": {"function": {"name": "train:loop"}}, "storage": {"uri": str(folder)}},
    }
    job = TrainJob.model_validate(document)
    begin(run_folder(job), job)
    now = datetime.now(UTC)
    summary = Summary(
        name="job",
        started=now,
        finished=now,
        workers=TrainingWorkers(count=1, device="cpu", threads=1),
        hardware=Hardware(cpu="one", cores=1, memory_gib=1.0),
    )
    run_folder(job).write("summary.json", summary.model_dump_json(by_alias=True).encode())
    return job


def again(job: TrainJob) -> Any:
    return run(job, source=Path.cwd(), started=time.time())


def test_it_is_shown_without_writing_anything(tmp_path: Path) -> None:
    """So that a run on a disk that can only be read is shown, too."""
    job = finished(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "job").iterdir()}
    assert again(job).already
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "job").iterdir()} == before


def test_another_spec_is_told_apart(tmp_path: Path) -> None:
    job = finished(tmp_path)
    training = job.spec.training.model_copy(update={"epochs": 7})
    other = job.model_copy(update={"spec": job.spec.model_copy(update={"training": training})})
    with pytest.raises(UserError, match=r"begun with another spec:\n  spec\.training\.epochs: \d+ → 7\n.*--fresh"):
        again(other)


def test_other_workers_are_no_other_spec(tmp_path: Path) -> None:
    job = finished(tmp_path)
    workers = job.spec.workers.model_copy(update={"count": 4, "memory": "16Gi"})
    assert again(job.model_copy(update={"spec": job.spec.model_copy(update={"workers": workers})})).already
