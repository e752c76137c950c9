"""Runs that search for hyperparameters: several trials on rows that are prepared once."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from training_runs import Run, kill_driver

pytestmark = [pytest.mark.nightly, pytest.mark.usefixtures("warm_ray")]

NewRun = Callable[..., Run]
RATE, LAYERS = "training.optimizer.adamW.learningRate", "model.textClassifier.encoder.layers"
GRID = {RATE: {"grid": [2.0e-3, 1.0e30]}, LAYERS: {"grid": [1, 2]}}
"""Two good trials, and two that diverge."""


def tuned(new_run: NewRun, parameters: dict[str, Any], **changes: Any) -> Run:
    tuning = {"parameters": parameters, "search": "grid", "parallel": 2, **changes}
    changes = {"workers.count": 1, "checkpoints.metric": "validation_f1", "tuning": tuning}
    return new_run("text", changes)


def trials(run: Run) -> list[dict[str, Any]]:
    return [json.loads(file.read_text()) for file in sorted(run.folder.glob("trials/*/trial.json"))]


def times(run: Run) -> dict[Path, int]:
    """The times at which each trial's measurements were written."""
    return {file: file.stat().st_mtime_ns for file in run.folder.glob("trials/*/metrics.jsonl")}


def test_a_search_goes_on_after_a_kill_and_ends_with_the_best_trials_model(new_run: NewRun):
    run = tuned(new_run, GRID)
    run.kill_at(lambda _: any(each["state"] == "done" for each in trials(run)), kill_driver)
    before, written = {each["number"]: each for each in trials(run)}, times(run)
    ended = {number for number, each in before.items() if each["state"] != "running"}
    assert not (run.folder / "evaluation.json").exists()

    done = run.finish()
    found = {each["number"]: each for each in trials(run)}
    assert {number: found[number] for number in ended} == {number: before[number] for number in ended}
    same = {path for path, at in times(run).items() if written.get(path) == at}
    assert {int(path.parent.name) for path in same} >= {number for number in ended if before[number]["epochs"] == 3}
    states = {each["number"]: each["state"] for each in found.values()}
    diverged = {number for number, each in found.items() if each["parameters"][RATE] == 1.0e30}
    assert states == {number: "failed" if number in diverged else "done" for number in (1, 2, 3, 4)}
    assert all("diverged" in found[number]["error"] for number in diverged)
    assert list(run.folder.glob("trials/*/evaluation.json")) == []  # the test set is scored for the best one alone

    best = max((each for each in found.values() if each["state"] == "done"), key=lambda each: each["value"])
    assert run.read("model/config.json")["num_hidden_layers"] == best["parameters"][LAYERS]
    assert run.read("evaluation.json")["test"]["rows"] == 151
    assert [record["epoch"] for record in run.records("epoch")] == [1, 2, 3]
    assert max(record["validation_f1"] for record in run.records("epoch")) == best["value"]
    assert f"layers {best['parameters'][LAYERS]}" in done.stdout
    run.again()
