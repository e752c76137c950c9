"""A run that has finished, when the same command is given again."""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from trainjob.api import TrainJob
from trainjob.driver.run import run
from trainjob.errors import Notice, UserError
from trainjob.runs.contents import read_contents
from trainjob.runs.folder import begin_attempt, clear_results, run_folder
from trainjob.runs.summary import Hardware, Summary, TrainingWorkers


def finished(folder: Path) -> TrainJob:
    """A TrainJob whose run has finished."""
    document: dict[str, Any] = {
        "apiVersion": "trainjob.dev/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "job"},
        "spec": {"model": {"function": {"name": "train:loop"}}, "storage": {"uri": str(folder)}},
    }
    job = TrainJob.model_validate(document)
    begin_attempt(run_folder(job), job)
    now = datetime.now(UTC)
    summary = Summary(
        name="job",
        started=now,
        finished=now,
        workers=TrainingWorkers(count=1, device="cpu", threads=1),
        hardware=Hardware(cpu="one", cores=1, memory_gib=1.0),
    )
    run_folder(job).write("summary.json", summary.model_dump_json(by_alias=True).encode())
    run_folder(job).write("report.html", b"a report")
    return job


def again(job: TrainJob) -> Any:
    return run(job, source=Path.cwd(), started=time.time())


def test_it_is_shown_without_writing_anything(tmp_path: Path) -> None:
    """A run on a read-only disk is shown, too."""
    job = finished(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "job").iterdir()}
    assert again(job).already
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "job").iterdir()} == before


def test_a_report_whose_writing_was_cut_is_written(tmp_path: Path) -> None:
    job = finished(tmp_path)
    report = tmp_path / "job" / "report.html"
    report.unlink()
    assert again(job).already
    assert "<h1>job" in report.read_text()


def test_another_spec_is_told_apart(tmp_path: Path) -> None:
    job = finished(tmp_path)
    training = job.spec.training.model_copy(update={"epochs": 7})
    other = job.model_copy(update={"spec": job.spec.model_copy(update={"training": training})})
    with pytest.raises(UserError, match=r"started with another spec:\n  spec\.training\.epochs: \d+ → 7\n.*--fresh"):
        again(other)


def test_other_workers_are_no_other_spec(tmp_path: Path) -> None:
    job = finished(tmp_path)
    workers = job.spec.workers.model_copy(update={"count": 4, "memory": "16Gi"})
    with pytest.warns(Notice, match=r"have no effect: spec\.workers\.count, spec\.workers\.memory"):
        assert again(job.model_copy(update={"spec": job.spec.model_copy(update={"workers": workers})})).already


@pytest.mark.parametrize("fresh", [False, True], ids=["continued", "started anew"])
def test_the_summary_of_an_attempt_that_was_replaced_is_no_end(tmp_path: Path, fresh: bool) -> None:
    """Its driver was cut off, and its summary arrives after another driver has begun."""
    job = finished(tmp_path)
    folder = run_folder(job)
    late = folder.read("summary.json")
    if fresh:
        clear_results(folder)
    else:
        folder.delete("summary.json")
    begin_attempt(folder, job)
    folder.write("summary.json", late)
    assert read_contents(folder).summary is None
    with pytest.raises(UserError, match=r"spec\.model\.function\.name: "):  # it goes on training
        again(job)


def test_a_run_whose_attempts_were_not_recorded_has_finished(tmp_path: Path) -> None:
    job = finished(tmp_path)
    run_folder(job).delete("attempts.json")
    assert again(job).already
