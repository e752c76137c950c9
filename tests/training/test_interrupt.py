"""Ctrl-C and dying workers: the command says how to continue, leaves nothing running, and does continue."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from runs import Run, assert_equal, interrupt_all, interrupt_driver, kill_worker, write_run

NewRun = Callable[..., Run]
Unbroken = tuple[Run, dict[str, Any]]
Kill = Callable[[int], None]


@pytest.fixture(scope="module", params=["dataLoader", "rayData"])
def unbroken(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, image_set: Path) -> Unbroken:
    """A finished run, and how its TrainJob differs from the usual one."""
    changes = {"dataset.loader": request.param, "training.epochs": 3}
    run = write_run(tmp_path_factory.mktemp("unbroken"), "image", image_set, changes, "unbroken")
    run.finish()
    return run, changes


@pytest.mark.parametrize("interrupt", [interrupt_all, interrupt_driver])
def test_ctrl_c(unbroken: Unbroken, new_run: NewRun, interrupt: Kill):
    whole, changes = unbroken
    run = new_run("image", changes)
    code, output = stop(run, interrupt)
    assert code == 130, output
    assert "stopped. The same command continues from step " in output
    assert "Traceback" not in output
    assert "continues from epoch-000" in run.finish().stdout
    assert_equal(run.weights(), whole.weights())


def test_a_worker_that_dies(unbroken: Unbroken, new_run: NewRun):
    whole, changes = unbroken
    run = new_run("image", changes)
    code, output = stop(run, kill_worker)
    assert code == 1, output
    assert "worker 0 failed: WorkerDied: " in output
    assert "(raylet)" not in output
    assert "The same command continues from step " in output
    assert "continues from epoch-000" in run.finish().stdout
    assert_equal(run.weights(), whole.weights())


def stop(run: Run, kill: Kill) -> tuple[int, str]:
    """Starts the run, calls `kill` after its first checkpoint, and returns the exit code and the output."""

    def check_and_kill(driver: int) -> None:
        assert len(run.processes()) >= 3  # the driver and two workers: what must not be left behind is seen
        kill(driver)

    return run.kill_at(bool, check_and_kill), run.output
