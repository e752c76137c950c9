"""The state of the trials, as their driver and the driver after it see it."""

from pathlib import Path

import pytest

from trainjob.api import Checkpoints, Tuning
from trainjob.api.training_status import TrainingPhase, TrainingStatus
from trainjob.errors import UserError, is_transient
from trainjob.launch.worker_errors import failure_of
from trainjob.runs.trials import TrialSteps
from trainjob.storage import Folder
from trainjob.tuning.board import Board

TUNING = Tuning.model_validate({"parameters": {"training.epochs": {"range": [1, 9]}}, "trials": 3}, by_alias=True)


def board(folder: Path, seen: list[TrainingStatus]) -> Board:
    return Board(Folder(str(folder)), TUNING, Checkpoints(metric="validation_f1"), seen.append)


def test_another_driver_goes_on_with_the_same_trials(tmp_path: Path):
    seen: list[TrainingStatus] = []
    first = board(tmp_path, seen)
    begun = [first.begin_next(), first.begin_next()]
    first.measured(1, 1, 0.5)
    first.measured(1, 2, 0.7)
    first.measured(1, 2, 0.9)  # told twice: the first counts
    first.measured(1, 3, 0.6)
    first.ended(1, "stopped")
    first.measured(2, 1, 0.4)
    second = board(tmp_path, seen)
    again = [second.begin_next(), second.begin_next()]
    assert [trial and trial.parameters for trial in again] == [trial and trial.parameters for trial in begun]
    assert again[0] is not None
    assert (again[0].state, again[0].value, again[0].epochs) == ("stopped", 0.7, 3)
    second.ended(1, "done")  # it repeated its epochs
    assert second.trials[1].state == "stopped"
    assert second.begin_next() is not None
    assert second.begin_next() is None
    second.ended(2, "done")
    second.ended(3, "failed", "diverged")
    status = seen[-1].tuning
    assert status is not None
    assert (status.ended, status.done, status.running, status.stopped, status.failed) == ("3/3", 1, 0, 1, 1)
    assert status.best is not None
    assert (status.best.number, status.best.value) == (1, 0.7)
    assert seen[-1].percent == 95, "the rest is the best trial's evaluation"
    assert second.best().number == 1


def test_that_all_have_failed_is_said_with_the_reasons(tmp_path: Path):
    seen: list[TrainingStatus] = []
    failing = board(tmp_path, seen)
    for number in range(1, 4):
        failing.begin_next()
        failing.measured(number, 1, 0.9)  # a failed trial counts as bad, whatever it had reached
        failing.ended(number, "failed", f"reason {number}")
    with pytest.raises(UserError, match=r"all 3 trials failed:\n  trial 1: reason 1\n(.|\n)*--fresh") as raised:
        failing.best()
    status = seen[-1].tuning
    assert status is not None
    assert (status.failed, status.ended) == (3, "3/3")
    failure = failure_of(raised.value, is_transient(raised.value))
    assert (failure.exception, failure.retryable) == ("UserError", False)


def test_a_search_counts_the_steps_of_its_trials(tmp_path: Path):
    seen: list[TrainingStatus] = []
    trials = board(tmp_path, seen)
    trials.begin_next()
    assert seen[-1].message == "trial 1 of 3, 0/3 trials ended"
    assert trials.phase() == TrainingPhase(name="trials"), "how many steps it takes is not known yet"
    trials.stepped(TrialSteps(1, 10, 40))
    assert trials.phase() == TrainingPhase(name="trials", done=10, total=120, unit="steps")
    trials.ended(1, "stopped")
    trials.begin_next()
    trials.stepped(TrialSteps(2, 5, 20))
    assert trials.phase() == TrainingPhase(name="trials", done=15, total=45, unit="steps"), "the first took 10"
    trials.begin_next()
    assert seen[-1].message == "trials 2, 3 of 3, 1/3 trials ended, 1 stopped early"
    assert seen[-1].percent is not None
    assert 31 < seen[-1].percent < 32
