"""However many workers train, and wherever they run, every row counts once and the arithmetic is the same."""

import math
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path

import numpy as np
import psutil
import pytest
from training_runs import Run, assert_equal, inside_second_epoch, kill_driver, write_run

from trainjob import Predictor

NewRun = Callable[..., Run]

FROZEN = {
    "model": {"imageClassifier": {"mlp": {"hidden": [32]}, "dropout": 0.0}},
    "dataset.loader": "dataLoader",
    "training.epochs": 1,
    "training.batchSize": 42,
    "training.optimizer": {"sgd": {"learningRate": 1.0e-12, "momentum": 0.0}},
    "training.scheduler": None,
}
"""A learning rate that leaves the weights as they begin; 720 rows to train on and 181 to score."""


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory, image_set: Path) -> dict[int, Run]:
    """Finished runs by their number of workers."""
    runs = {}
    for workers in (1, 2, 3):
        changes = FROZEN | {"workers.count": workers, "dataset.validation": {"uri": str(image_set / "test")}}
        runs[workers] = write_run(tmp_path_factory.mktemp("frozen"), "image", image_set, changes, f"frozen-{workers}")
        runs[workers].finish()
    return runs


@pytest.mark.parametrize("workers", [2, 3])
def test_sets_that_do_not_divide_are_scored_row_by_row(frozen: dict[int, Run], workers: int):
    one, many = (frozen[count].read("evaluation.json") for count in (1, workers))
    for part in ("validation", "test"):
        assert many[part]["rows"] == 181
        assert many[part]["confusion"] == one[part]["confusion"]
        assert many[part]["loss"] == pytest.approx(one[part]["loss"], rel=1e-6)


@pytest.mark.parametrize("workers", [2, 3])
def test_the_training_loss_is_the_mean_over_all_rows(frozen: dict[int, Run], workers: int):
    """Of 720 rows in batches of 42 the last batch has 6: a mean of batches' means would differ."""
    losses = [frozen[count].records("epoch")[0]["train_loss"] for count in (1, workers)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-6)


def test_the_training_loss_is_that_of_the_model(frozen: dict[int, Run], image_set: Path):
    predictor = Predictor.load(frozen[2].folder)
    files = sorted((image_set / "train").glob("*/*.png"))
    probabilities = predictor.predict_proba(files)
    right = [predictor.classes.index(file.parent.name) for file in files]
    expected = -np.log(probabilities[np.arange(len(files)), right]).mean()
    assert frozen[2].records("epoch")[0]["train_loss"] == pytest.approx(expected, rel=1e-5)


def test_validation_scores_the_very_model_that_is_saved(new_run: NewRun, image_set: Path):
    """Batch normalization has other statistics on each rank after a step."""
    changes = {"dataset.loader": "dataLoader", "training.epochs": 1, "dataset.test": None}
    run = new_run("image", changes | {"dataset.validation": {"uri": str(image_set / "test")}})
    run.finish()
    predictor = Predictor.load(run.folder)
    files = sorted((image_set / "test").glob("*/*.png"))
    right = [predictor.classes.index(file.parent.name) for file in files]
    expected = -np.log(predictor.predict_proba(files)[np.arange(len(files)), right]).mean()
    assert run.records("epoch")[0]["validation_loss"] == pytest.approx(expected, rel=1e-5)


STEP = FROZEN | {
    "training.epochs": 2,
    "training.batchSize": 720,
    "training.optimizer": {"sgd": {"learningRate": 0.1, "momentum": 0.0}},
    "workers.count": 1,
    "dataset.test": None,
}
"""Every row in every step, so that the steps do not depend on the rows' order."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, image_set: Path) -> Run:
    changes = STEP | {"dataset.validation": {"uri": str(image_set / "test")}}
    run = write_run(tmp_path_factory.mktemp("whole"), "image", image_set, changes, "whole")
    run.finish()
    return run


@pytest.mark.parametrize("workers", [1, 2])
def test_gradients_of_several_batches_are_averaged(whole: Run, new_run: NewRun, image_set: Path, workers: int):
    accumulated = {"training.batchSize": 180, "training.gradientAccumulation": 4, "workers.count": workers}
    run = new_run("image", STEP | accumulated | {"dataset.validation": {"uri": str(image_set / "test")}})
    run.finish()
    assert [record["step"] for record in run.records("epoch")] == [1, 2]
    assert distance(run, whole) < 1e-5


def test_clipping_bounds_the_update(frozen: dict[int, Run], whole: Run, new_run: NewRun, image_set: Path):
    changes = {"training.epochs": 1, "training.gradientClipping": 1.0e-2, "workers.count": 2}
    run = new_run("image", STEP | changes | {"dataset.validation": {"uri": str(image_set / "test")}})
    run.finish()
    assert distance(whole, frozen[1]) > 2e-3
    assert distance(run, frozen[1]) == pytest.approx(0.1 * 1.0e-2, rel=1e-3)


def distance(run: Run, other: Run) -> float:
    """L2 norm of the difference of all weights."""
    weights, others = run.weights(), other.weights()
    return math.sqrt(sum((weights[name] - others[name]).square().sum().item() for name in weights))


def test_three_workers_continue_exactly(new_run: NewRun):
    """From three on, gradients add up in an order that DistributedDataParallel changes after its first step."""
    changes = {"dataset.loader": "dataLoader", "workers.count": 3, "training.batchSize": 48, "training.epochs": 2}
    unbroken, broken = new_run("text", changes, "unbroken"), new_run("text", changes, "broken")
    unbroken.finish()
    broken.kill_at(inside_second_epoch, kill_driver)
    assert "continues from epoch-0001-step-00000012" in broken.finish().stdout
    assert_equal(broken.weights(), unbroken.weights())


@pytest.fixture(scope="module")
def ray_address(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """A Ray cluster, as `RAY_ADDRESS` names it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--head", "--block", f"--port={port}", "--num-cpus=4", "--include-dashboard=false"]
    log = tmp_path_factory.mktemp("ray") / "log"
    with log.open("w") as output:
        head = subprocess.Popen(
            [sys.executable, "-m", "ray.scripts.scripts", "start", *options],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | {"RAY_AUTH_MODE": "token"},
        )
    while "Ray runtime started" not in log.read_text():
        assert head.poll() is None, log.read_text()
        time.sleep(0.1)
    yield f"127.0.0.1:{port}"
    servers = psutil.Process(head.pid).children(recursive=True)
    for server in servers:
        server.kill()
    psutil.wait_procs(servers)
    head.kill()
    head.wait()


def test_a_ray_cluster_and_local_processes_give_the_same_weights(
    new_run: NewRun, ray_address: str, monkeypatch: pytest.MonkeyPatch
):
    changes = {"dataset.loader": "dataLoader", "training.epochs": 1}
    local, remote = new_run("text", changes, "local"), new_run("text", changes, "remote")
    local.finish()
    monkeypatch.setenv("RAY_ADDRESS", ray_address)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    remote.finish()
    assert_equal(remote.weights(), local.weights())
    assert remote.read("evaluation.json") == local.read("evaluation.json")
