"""Ctrl-C and dying workers: the command says how to continue, leaves nothing running, and does continue.

That what continues ends with the same weights is for test_resume.py.
"""

from collections.abc import Callable

import pytest
from training_runs import Run, interrupt_all, interrupt_driver, kill_worker

NewRun = Callable[..., Run]
Kill = Callable[[int], None]


@pytest.mark.parametrize("loader", ["dataLoader", "rayData"])
def test_whatever_stops_a_run_it_continues(new_run: NewRun, loader: str):
    run = new_run("image", {"dataset.loader": loader, "training.epochs": 8})

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


def stop(run: Run, kill: Kill, code: int) -> str:
    """Starts the run, calls `kill` once it has a new checkpoint, and returns the output."""
    before = set(run.complete_checkpoints())

    def check_and_kill(driver: int) -> None:
        assert len(run.processes()) >= 3  # the driver and two workers: what must not be left behind is seen
        kill(driver)

    assert run.kill_at(lambda checkpoints: bool(set(checkpoints) - before), check_and_kill) == code, run.output
    assert "Traceback (most recent call last)" not in run.output
    return run.output
