"""Whatever ends a run's processes, the same command continues it to the very weights of a run that was not ended.

Each run here is ended several times, in another way each time, once it has a new checkpoint.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from training_runs import (
    STREAMED,
    Finished,
    Run,
    assert_equal,
    crash_driver,
    interrupt_all,
    interrupt_driver,
    kill_worker,
    write_run,
)

NewRun = Callable[..., Run]
SLOW = {"checkpoints.everySteps": 1}
"""Each step waits until the checkpoint before it is saved, so that training is not over before it is ended."""
Kill = Callable[[int], None]


def test_local_processes(new_run: NewRun, local: Finished):
    run = new_run("text", {"dataset.loader": "dataLoader", "retries": 1} | SLOW)

    assert end(run, interrupt_driver) == 130, run.output
    assert "stopped. The same command continues from " in run.output
    assert "Traceback (most recent call last)" not in run.output

    assert end(run, crash_driver) == -11, run.output
    assert "training, continues from epoch-0" in run.output, run.output
    assert "Fatal Python error: Segmentation fault" in run.output
    assert "trainjob/training/" in run.output  # where it was

    assert end(run, kill_worker) == 0, run.output
    assert "training, continues from epoch-0" in run.output, run.output
    assert "worker 0 failed: WorkerDied: was killed by signal 9; starting again" in run.output
    assert run.read("summary.json")["attempts"] == 3
    assert_same_end(run, local[0])


@pytest.fixture
def streamed(tmp_path_factory: pytest.TempPathFactory, text_set: Path, warm_ray: None) -> Run:
    """A finished run whose rows Ray Data streamed in every epoch: they come in an order of their own."""
    run = write_run(tmp_path_factory.mktemp("streamed"), "text", text_set, {}, "streamed")
    run.first = STREAMED
    run.finish()
    return run


def test_a_ray_cluster_of_its_own(new_run: NewRun, streamed: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("RAY_ADDRESS")
    monkeypatch.delenv("RAY_AUTH_MODE")
    run = new_run("text", {"retries": 1} | SLOW)
    run.first = STREAMED

    assert end(run, interrupt_all) == 130, run.output
    assert "stopped. The same command continues from " in run.output
    assert "Traceback (most recent call last)" not in run.output

    assert end(run, kill_worker) == 0, run.output
    assert "training, continues from epoch-0" in run.output, run.output
    assert re.search(r"worker [01] failed: WorkerDied: .*; starting again", run.output), run.output
    assert "Traceback (most recent call last)" not in run.output
    assert "(raylet)" not in run.output
    assert run.read("summary.json")["attempts"] == 2
    assert_same_end(run, streamed)


def test_a_student(new_run: NewRun, local: Finished, text_set: Path):
    """Ended while it trains; what the teacher has said is kept. Its weights: tests/unit/training/test_distillation."""
    changes = {
        "dataset.loader": "dataLoader",
        "dataset.unlabelled": {"uri": str(text_set / "test.csv")},
        "training.distillation": {"teacher": str(local[0].folder)},
    }
    run = new_run("text", changes | SLOW)
    assert end(run, crash_driver) == -11, run.output
    files = {path: path.stat().st_mtime_ns for path in (run.folder / "soft-labels").iterdir()}
    run.finish()
    assert {path: path.stat().st_mtime_ns for path in (run.folder / "soft-labels").iterdir()} == files
    assert run.read("summary.json")["rows"] == {"train": 480, "validation": 121, "test": 151, "unlabelled": 151}


def end(run: Run, kill: Kill) -> int:
    """Starts the run, calls `kill` once it has a new checkpoint, and returns the exit code."""
    before = set(run.complete_checkpoints())

    def check_and_kill(driver: int) -> None:
        assert len(run.processes()) >= 3  # the driver and two workers: what must not be left behind is seen
        kill(driver)

    return run.kill_at(lambda checkpoints: bool(set(checkpoints) - before), check_and_kill)


def assert_same_end(run: Run, whole: Run) -> None:
    assert_equal(run.weights(), whole.weights())
    assert [record["step"] for record in run.records("step")] == [record["step"] for record in whole.records("step")]
    losses = [[record["train_loss"] for record in one.records("epoch")] for one in (run, whole)]
    assert losses[0] == losses[1]
    assert run.read("evaluation.json") == whole.read("evaluation.json")
