"""What the report of a search shows of its trials."""

import json
import math
import re
from pathlib import Path

import pytest
from report_runs import TEXT_JOB, Page, epoch, write_run

from trainjob.errors import UserError
from trainjob.report.formatting import MISSING
from trainjob.report.render import render
from trainjob.runs.trials import Trial, trial_folder, write_trial
from trainjob.storage import Folder

RATE, LAYERS = "training.optimizer.adamW.learningRate", "model.textClassifier.encoder.layers"
TUNED_JOB = (
    TEXT_JOB
    + f"""\
  tuning:
    parameters:
      {RATE}: {{logUniform: [1.0e-5, 1.0e-1]}}
      {LAYERS}: {{choice: [1, 2]}}
    trials: 12
    search: random
"""
)


def searched(folder: Path, trials: int) -> Folder:
    """A run whose trials' values depend on the learning rate alone; the last one diverged."""
    run = write_run(folder, TUNED_JOB, [])
    for number in range(1, trials + 1):
        rate = 10.0 ** (-5 + 4 * (number - 1) / max(trials - 1, 1))
        value = abs(math.log10(rate) + 3) + 0.1
        parameters = {RATE: rate, LAYERS: 1 + number % 2}
        trial = Trial(number=number, parameters=parameters, state="done", value=value, epochs=2, seconds=61.0)
        if number == trials:
            trial = Trial(number=number, parameters=parameters, state="failed", error="training <diverged>")
        write_trial(run, trial)
        lines = [epoch(1, validation_loss=2 * value), epoch(2, validation_loss=value)]
        if trial.state == "done":
            content = "".join(json.dumps(line) + "\n" for line in lines)
            trial_folder(run, number).write("metrics.jsonl", content.encode())
    return run


def test_all_trials_are_in_the_table_best_first_and_failed_last(tmp_path: Path) -> None:
    page = Page(render(searched(tmp_path, 12)))
    head, best, *others, failed = page.tables["trials"]
    assert head == ["Trial", "State", "validation loss", "Epochs", "Time", "layers", "learningRate"]
    assert best[:5] == ["6", "done", "0.2818", "2", "1 min 01 s"]
    assert len(others) == 10
    assert failed[:3] == ["12", "failed: training <diverged>", MISSING]
    assert "The search" in page.text


def test_what_matters_comes_first(tmp_path: Path) -> None:
    first, second = Page(render(searched(tmp_path, 12))).tables["importances"][1:]
    assert (first[0], second[0]) == ("learningRate", "layers")
    assert float(first[1].rstrip("%")) > 80


def test_the_pictures_say_what_they_show(tmp_path: Path) -> None:
    html = render(searched(tmp_path, 12))
    described = [a["aria-label"] for _, a in Page(html).elements if a.get("role") == "img"]
    assert described[0].startswith("trial 1 ends at 2.1; trial 2 ends at")
    assert described[1].startswith("The best trial has learningRate 0.00065")
    charts = "".join(re.findall(r"<svg.*?</svg>", html, re.DOTALL))
    assert re.findall(r"(?:stroke|fill): #\w+", charts) == []


@pytest.mark.parametrize("trials", [1, 2, 3])
def test_few_trials_show_what_there_is(tmp_path: Path, trials: int) -> None:
    tables = Page(render(searched(tmp_path, trials))).tables
    assert len(tables["trials"]) == trials + 1
    assert "importances" not in tables


def test_a_trials_damaged_measurements_are_named(tmp_path: Path) -> None:
    run = searched(tmp_path, 3)
    trial_folder(run, 2).write("metrics.jsonl", b"{")
    with pytest.raises(UserError, match=r"/trials/0002/metrics\.jsonl is damaged"):
        render(run)


def test_before_the_first_trial_there_is_nothing_to_show(tmp_path: Path) -> None:
    assert "The search" not in Page(render(write_run(tmp_path, TUNED_JOB, []))).text
