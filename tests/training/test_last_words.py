"""What a run tells of itself at its end, and how often it is tried."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from training_runs import LIMIT, Run, crash_driver, write_trainjob

from trainjob import Predictor

NewRun = Callable[..., Run]

TELLING = """
import sys, time
from contextlib import suppress
from pathlib import Path
from trainjob.api.load import load_trainjob
from trainjob.training.run import run

file = Path(sys.argv[1])
tell = lambda status: print(status.model_dump_json(by_alias=True, exclude_none=True), flush=True)
with suppress(Exception):
    run(load_trainjob(file), source=file.parent, started=time.time(), on_status=tell)
"""

LOOP = """
from pathlib import Path

import ray.train


def train_loop(config):
    if ray.train.get_context().get_world_rank() == 1:
        with Path(config["log"]).open("a") as log:
            print("tried", file=log)
        raise ArithmeticError("rank 1 cannot go on")
    ray.train.report({"loss": 0.5})
    ray.train.report({"loss": 0.25})
"""


def told(run: Run) -> list[dict[str, Any]]:
    """The snapshots of a run, each as `status.training` has it."""
    done = subprocess.run([sys.executable, "-c", TELLING, str(run.file)], capture_output=True, text=True, timeout=LIMIT)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert lines != [], done.stderr
    return [json.loads(line) for line in lines]


def test_a_finished_run_tells_its_scores_and_its_best_checkpoint_again_and_again(new_run: NewRun):
    run = new_run("image", {"dataset.loader": "dataLoader", "training.epochs": 2})
    snapshots = told(run)
    last = snapshots[-1]
    assert [snapshot["stage"] for snapshot in snapshots].count("Finished") == 1
    assert (last["stage"], last["percent"], last["epochsCompleted"]) == ("Finished", 100.0, 2)
    assert "eta" not in last
    scores = run.read("evaluation.json")
    assert last["evaluation"]["test_accuracy"] == scores["test"]["accuracy"]
    assert last["evaluation"]["validation_f1"] == scores["validation"]["macro"]["f1"]
    assert last["metrics"].keys() == {"train_loss", *(key for key in last["evaluation"] if key.startswith("valid"))}
    best = last["bestCheckpoint"]
    assert (best["metric"], best["value"]) == ("validation_loss", scores["validation"]["loss"])
    assert Predictor.load(best["uri"]).classes == [f"digit-{digit}" for digit in range(5)]
    [again] = told(run)  # as when its end was not noticed
    of_this_attempt = {"steps", "loss", "learningRate", "samplesPerSecond", "latestCheckpoint"}
    assert again == {field: value for field, value in last.items() if field not in of_this_attempt}

    (run.folder / "summary.json").unlink()  # as if it had been stopped before its last words
    training = next(snapshot for snapshot in told(run) if snapshot["stage"] == "Training")
    assert training["message"].startswith("continues from epoch-0002")
    for field in ("step", "epoch", "epochsCompleted", "metrics", "bestCheckpoint"):  # all that it had come to, at once
        assert training[field] == last[field]


def function_run(folder: Path, workers: int, retries: int, uid: str | None) -> Run:
    (folder / "own_loop.py").write_text(LOOP)
    spec = {
        "model": {"function": {"name": "own_loop:train_loop", "config": {"log": str(folder / "log")}}},
        "workers": {"count": workers},
        "training": {"batchSize": workers},
        "storage": {"uri": "runs"},
        "retries": retries,
    }
    run = write_trainjob(folder, "own", spec)
    document = yaml.safe_load(run.file.read_text())
    document["metadata"]["uid"] = uid
    run.file.write_text(yaml.safe_dump(document))
    return run


def test_a_function_tells_what_it_reported_last(tmp_path: Path):
    run = function_run(tmp_path, 1, 0, None)
    *before, last = told(run)
    assert (before[-1]["stage"], before[-1]["step"]) == ("Training", 2)
    for training in before:
        assert training.keys() & {"epochs", "steps", "percent"} == set()  # how much there is to do only it knows
    assert (last["stage"], last["percent"], last["step"]) == ("Finished", 100.0, 2)
    assert last["metrics"] == {"loss": 0.25}
    assert told(run) == [last]


def test_a_failure_counts_once_over_all_drivers(tmp_path: Path):
    run = function_run(tmp_path, 2, 1, "11111111-2222-3333-4444-555555555555")
    attempts = tmp_path / "runs" / "own-11111111" / "attempts.json"
    snapshots = told(run)
    assert (tmp_path / "log").read_text().count("tried") == 2
    restarts = [snapshot["message"] for snapshot in snapshots if "starting again" in snapshot["message"]]
    assert restarts == ["worker 1 failed: ArithmeticError: rank 1 cannot go on; starting again"]
    failure = snapshots[-1]["failure"]
    assert (failure["rank"], failure["exception"], failure["retryable"]) == (1, "ArithmeticError", False)
    assert snapshots[-1]["message"] == ""
    assert 'own_loop.py", line' in failure["traceback"]
    assert json.loads(attempts.read_text())["failures"] == 2
    told(run)  # KubeRay was faster than the operator
    assert (tmp_path / "log").read_text().count("tried") == 3


def test_a_mistake_is_not_tried_again(new_run: NewRun):
    changes = {
        "dataset.loader": "dataLoader",
        "training.epochs": 1,
        "training.batchSize": 64,
        "training.optimizer": {"sgd": {"learningRate": 1.0e30}},
        "training.scheduler": None,
        "retries": 3,
    }
    snapshots = told(new_run("text", changes))
    assert [snapshot for snapshot in snapshots if "starting again" in snapshot["message"]] == []
    failure = snapshots[-1]["failure"]
    assert "training diverged" in failure["message"]
    assert failure["retryable"] is False
    assert snapshots[-1]["stage"] == "Training"


def test_a_crash_of_native_code_tells_where_it_was(new_run: NewRun):
    run = new_run("image", {"dataset.loader": "dataLoader"})
    assert run.kill_at(bool, crash_driver) == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in run.output
    assert "trainjob/training/local.py" in run.output
