"""What `spec.training` and `spec.checkpoints` say is what happens."""

from collections.abc import Callable

import pytest
import torch
from training_runs import Run

NewRun = Callable[..., Run]

LOCAL = {"dataset.loader": "dataLoader", "dataset.test": None, "workers.count": 1}


def test_plateaus_lower_the_learning_rate_and_then_end_training(new_run: NewRun):
    changes = LOCAL | {
        "training.epochs": 20,
        "training.batchSize": 128,
        "training.optimizer": {"sgd": {"learningRate": 1.0e-6}},
        "training.scheduler": {"reduceOnPlateau": {"factor": 0.5, "patience": 1}},
        "training.earlyStopping": {"patience": 4, "minDelta": 0.1},
        "model": {"imageClassifier": {"mlp": {"hidden": [8]}}},
    }
    run = new_run("image", changes)
    output = run.finish().stdout
    assert "(stopped early)" in output
    assert run.read("summary.json")["stoppedEarly"] is True
    assert [record["epoch"] for record in run.records("epoch")] == [1, 2, 3, 4, 5]
    rates = {record["epoch"]: record["learning_rate"] for record in run.records("step")}
    assert rates == {1: 1.0e-6, 2: 1.0e-6, 3: 1.0e-6, 4: 0.5e-6, 5: 0.5e-6}


def test_the_chosen_metric_ranks_checkpoints_and_keep_says_how_many_stay(new_run: NewRun):
    changes = LOCAL | {
        "training.epochs": 5,
        "checkpoints": {"metric": "validation_accuracy", "mode": "min", "keep": 2, "everySteps": 5},
    }
    run = new_run("image", changes)
    run.finish()
    epochs = run.records("epoch")
    worst = sorted(epochs, key=lambda record: record["validation_accuracy"])  # stable: of equals the earlier
    assert worst[0] is not epochs[-1]
    kept = {record["step"]: record["epoch"] for record in [*worst[:2], epochs[-1]]}
    assert run.complete_checkpoints() == [f"epoch-{epoch:04d}-step-{step:08d}" for step, epoch in sorted(kept.items())]
    best = run.read("summary.json")["bestCheckpoint"]
    assert (best["metric"], best["step"]) == ("validation_accuracy", worst[0]["step"])
    assert run.read("evaluation.json")["validation"]["accuracy"] == worst[0]["validation_accuracy"]


def test_checkpoints_inside_an_epoch(new_run: NewRun):
    run = new_run("image", LOCAL | {"training.epochs": 1, "checkpoints": {"everySteps": 7}})
    seen: set[str] = set()

    def all_seen(checkpoints: list[str]) -> bool:
        seen.update(checkpoints)
        return "epoch-0001-step-00000036" in seen

    run.kill_at(all_seen, lambda _: None)
    assert seen <= {f"epoch-0000-step-{step:08d}" for step in (7, 14, 21, 28, 35)} | {"epoch-0001-step-00000036"}
    assert len(seen) > 2
    assert run.complete_checkpoints() == ["epoch-0001-step-00000036"]


@pytest.mark.parametrize("precision", ["bf16", "float32"])
def test_precision_is_of_the_forward_pass_alone(new_run: NewRun, precision: str):
    run = new_run("text", LOCAL | {"training.epochs": 1, "training.batchSize": 64, "training.precision": precision})
    run.finish()
    assert run.read("summary.json")["precision"] == precision
    assert {weight.dtype for weight in run.weights().values()} == {torch.float32}
