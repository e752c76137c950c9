"""The fields of `status.training` at the end of a run and after it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from training_runs import Run

from trainjob import Predictor

NewRun = Callable[..., Run]


@pytest.mark.nightly
def test_a_finished_run_reports_its_end_as_often_as_it_is_asked(new_run: NewRun, image_set: Path):
    """The training rows' folder holds the test set, too, which is taken as such in every attempt."""
    dataset = {"train": {"uri": str(image_set)}, "loader": "dataLoader"}
    run = new_run("image", {"dataset": dataset, "training.epochs": 2})
    snapshots = run.snapshots()
    last = snapshots[-1]
    assert [snapshot["stage"] for snapshot in snapshots].count("Finished") == 1
    assert (last["stage"], last["percent"], last["epochsCompleted"]) == ("Finished", 100.0, 2)
    assert "eta" not in last
    scores = run.read("evaluation.json")
    assert scores["test"]["accuracy"] > 0.9
    assert last["evaluation"]["test_accuracy"] == scores["test"]["accuracy"]
    assert last["evaluation"]["validation_f1"] == scores["validation"]["macro"]["f1"]
    assert last["metrics"].keys() == {"train_loss", *(key for key in last["evaluation"] if key.startswith("valid"))}
    best = last["bestCheckpoint"]
    assert (best["metric"], best["value"]) == ("validation_loss", scores["validation"]["loss"])
    assert Predictor.load(best["uri"]).classes == [f"digit-{digit}" for digit in range(5)]
    again = run.snapshot_again()  # as when its end was not noticed
    of_this_attempt = {"steps", "loss", "learningRate", "samplesPerSecond", "latestCheckpoint"}
    assert again == {field: value for field, value in last.items() if field not in of_this_attempt}

    (run.folder / "summary.json").unlink()  # as if it had been stopped before it could write its end
    training = next(snapshot for snapshot in run.snapshots() if snapshot["stage"] == "Training")
    assert training["message"].startswith("continues from epoch-0002")
    for field in ("step", "epoch", "epochsCompleted", "metrics", "bestCheckpoint"):  # all that it had come to, at once
        assert training[field] == last[field]
