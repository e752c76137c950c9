"""Whatever ends a run's processes, the same command continues it to the very weights of a run that was not ended.

Each run here is ended several times, in another way each time, once it has a new checkpoint. On Ray:
test_resume_on_ray.py.
"""

import signal
from collections.abc import Callable
from pathlib import Path
from shutil import copytree

import psutil
import pytest
from training_runs import (
    LIMIT,
    SLOW,
    Finished,
    Run,
    crash_driver,
    interrupt_all,
    interrupt_driver,
    kill_driver,
    kill_worker,
    terminate_driver,
)

NewRun = Callable[..., Run]


def test_local_processes(new_run: NewRun, local: Finished):
    run = new_run("text", {"dataset.loader": "dataLoader", "retries": 1} | SLOW)
    started = leave_another(run, local[0])

    assert run.end_at_checkpoint(interrupt_driver, "--fresh") == 130, run.output
    assert run.read("attempts.json")["started"] > started
    assert not (run.folder / "checkpoints" / "left-over").exists()
    assert not (run.folder / "baselines.json").exists()
    assert "stopped. The same command continues from " in run.output
    assert "Traceback (most recent call last)" not in run.output

    assert run.end_at_checkpoint(crash_driver) == -11, run.output
    assert "training, continues from epoch-0" in run.output, run.output
    assert "Fatal Python error: Segmentation fault" in run.output
    assert "trainjob/driver/" in run.output  # where it was

    assert run.end_at_checkpoint(kill_worker) == 0, run.output
    assert "training, continues from epoch-0" in run.output, run.output
    assert "worker 0 failed: WorkerDied: was killed by signal 9; starting again" in run.output
    assert run.read("summary.json")["attempts"] == 3
    run.assert_same_end(local[0])


@pytest.mark.nightly
def test_a_student(new_run: NewRun, local: Finished, text_set: Path):
    """Interrupted during training, it keeps the teacher's labels. Its weights:
    tests/unit/driver/test_distillation.py."""
    changes = {
        "dataset.loader": "dataLoader",
        "dataset.unlabelled": {"uri": str(text_set / "test.csv")},
        "training.distillation": {"teacher": str(local[0].folder)},
    }
    run = new_run("text", changes | SLOW)
    assert run.end_at_checkpoint(crash_driver) == -11, run.output
    files = {path: path.stat().st_mtime_ns for path in (run.folder / "soft-labels").iterdir()}
    run.finish()
    assert {path: path.stat().st_mtime_ns for path in (run.folder / "soft-labels").iterdir()} == files
    assert run.read("summary.json")["rows"] == {"train": 480, "validation": 121, "test": 151, "unlabelled": 151}


@pytest.mark.parametrize(
    ("stop", "code"),
    [(terminate_driver, 128 + signal.SIGTERM), (interrupt_all, 128 + signal.SIGINT), (kill_driver, -signal.SIGKILL)],
    ids=["sigterm", "ctrl-c", "kill"],
)
def test_a_run_that_is_stopped_before_it_trains_leaves_no_process(
    new_run: NewRun, stop: Callable[[int], None], code: int
):
    run = new_run("text", {"dataset.loader": "dataLoader"})
    driver = run.start()
    assert driver.stdout is not None
    assert "preparing" in driver.stdout.readline()
    assert len(run.processes()) == 2  # the driver, and the process that workers are to be forked from
    stop(driver.pid)
    said = driver.communicate(timeout=LIMIT)[0]
    assert ("stopped. The same command continues from the latest checkpoint" in said) == (code > 0)
    assert driver.returncode == code
    assert psutil.wait_procs(run.processes(), timeout=LIMIT)[1] == []


def leave_another(run: Run, whole: Run) -> str:
    """Puts another, finished run of its name into its folder; returns when that run was started."""
    copytree(whole.folder, run.folder)
    (run.folder / "checkpoints" / "left-over").write_text("of another run")
    assert (run.folder / "baselines.json").exists()
    return run.read("attempts.json")["started"]
