"""The report's section on the trials of a search."""

import re
from pathlib import Path

import pytest

from report_runs import LAYERS, RATE, TUNED_JOB, Page, searched, write_run
from trainjob.errors import UserError
from trainjob.formatting import MISSING
from trainjob.report.render import render
from trainjob.runs.trials import Trial, trial_folder, write_trial


def test_all_trials_are_in_the_table_best_first_and_failed_last(tmp_path: Path) -> None:
    page = Page(render(searched(tmp_path, 12)))
    head, best, *others, failed = page.tables["trials"]
    assert head == ["Trial", "State", "Validation loss", "Epochs", "Time", "layers", "learningRate"]
    assert best[:5] == ["6", "done", "0.2818", "2", "1 min 01 s"]
    assert len(others) == 10
    assert failed[:3] == ["12", "failed", MISSING]
    assert "Failed: trial 12: training <diverged>" in page.text
    assert "The search" in page.text


def test_a_search_under_way_says_how_far_it_is(tmp_path: Path) -> None:
    run = searched(tmp_path, 5)
    write_trial(run, Trial(number=6, parameters={RATE: 1e-3, LAYERS: 2}, state="running"))
    page = Page(render(run))
    assert "5 of 12 trials have ended, 1 running, 1 failed. The best so far is trial 3: validation loss" in page.text
    assert "No epoch is complete yet" not in page.text
    assert page.terms["Validation loss, trial 3, the best so far"] == "0.1000"


def test_long_numbers_and_errors_leave_the_table_narrow(tmp_path: Path) -> None:
    run = searched(tmp_path, 3)
    error = "out of memory: lower spec.training.batchSize " * 5
    for number in (4, 5):
        parameters = {RATE: 0.0012345678901234, LAYERS: 2}
        write_trial(run, Trial(number=number, parameters=parameters, state="failed", error=error))
    page = Page(render(run))
    assert page.tables["trials"][-1] == ["5", "failed", MISSING, "0", "0.00 s", "2", "0.001235"]
    assert page.text.count("lower spec.training.batchSize") == 5
    assert "Failed: trials 4, 5: out of memory" in page.text


def test_before_the_first_trial(tmp_path: Path) -> None:
    assert "No trial has begun yet." in Page(render(write_run(tmp_path, TUNED_JOB, []))).text


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
