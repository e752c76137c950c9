"""Ctrl-C and dying workers: the command says how to continue, leaves nothing running, and does continue."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from training_runs import Run, assert_equal, interrupt_all, interrupt_driver, kill_worker, write_run

NewRun = Callable[..., Run]
Unbroken = tuple[Run, dict[str, Any]]
Kill = Callable[[int], None]


@pytest.fixture(scope="module", params=["dataLoader", "rayData"])
def unbroken(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, image_set: Path) -> Unbroken:
    """A finished run, and how its TrainJob differs from the usual one."""
    changes = {"dataset.loader": request.param, "training.epochs": 8}
    run = write_run(tmp_path_factory.mktemp("unbroken"), "image", image_set, changes, "unbroken")
    run.finish()
    return run, changes


def test_whatever_stops_a_run_it_continues(unbroken: Unbroken, new_run: NewRun):
    whole, changes = unbroken
    run = new_run("image", changes)

    output = stop(run, interrupt_all, 130)
    assert "stopped. The same command continues from " in output

    output = stop(run, interrupt_driver, 130)
    assert "training, continues from epoch-000" in output
    assert "stopped. The same command continues from step " in output

    output = stop(run, kill_worker, 1)
    assert "training, continues from epoch-000" in output
    assert "worker 0 failed: WorkerDied: " in output
    assert "The same command continues from step " in output
    assert "(raylet)" not in output

    run.finish()
    assert_equal(run.weights(), whole.weights())
    assert run.read("summary.json")["attempts"] == 4


def stop(run: Run, kill: Kill, code: int) -> str:
    """Starts the run, calls `kill` once it has a new checkpoint, and returns the output."""
    before = set(run.complete_checkpoints())

    def check_and_kill(driver: int) -> None:
        assert len(run.processes()) >= 3  # the driver and two workers: what must not be left behind is seen
        kill(driver)

    assert run.kill_at(lambda checkpoints: bool(set(checkpoints) - before), check_and_kill) == code, run.output
    assert "Traceback (most recent call last)" not in run.output
    return run.output
