"""Training from Python."""

from pathlib import Path
from typing import Any

import pytest
from training_runs import TEXT_MODEL

import trainjob
from trainjob.api import TrainJob
from trainjob.api.document import InvalidDocument


def test_a_dict_or_a_trainjob_is_trained_and_read(tmp_path: Path, text_set: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").symlink_to(text_set)
    spec: dict[str, Any] = {
        "model": TEXT_MODEL,
        "dataset": {
            "train": {"uri": "data/train.csv"},
            "text": ["title", "body"],
            "label": "label",
            "loader": "dataLoader",
        },
        "training": {"epochs": 1},
        "baselines": {},
    }
    content = {"apiVersion": "trainjob.dev/v1alpha1", "kind": "TrainJob", "metadata": {"name": "tags"}, "spec": spec}
    with pytest.raises(InvalidDocument, match=r"spec.training.epochs  must be at least 1, got 0"):
        trainjob.run(content, ["spec.training.epochs=0"])
    percents: list[float | None] = []
    run = trainjob.run(content, on_progress=lambda status: percents.append(status.percent))
    assert run.uri == str(tmp_path / "runs" / "tags")
    assert percents[-1] == 100
    metrics = run.metrics()
    assert set(metrics["kind"]) == {"step", "epoch"}
    [scored] = metrics.loc[metrics["kind"] == "epoch", "validation_accuracy"]
    assert scored == run.evaluation["validation"].as_metrics("validation")["validation_accuracy"]
    assert Path(run.report).exists()
    assert len(run.predictor().predict(["red1", "blue2"])) == 2  # pyrefly: ignore[missing-attribute]

    typed = TrainJob.model_validate(content)
    percents.clear()
    assert trainjob.run(typed, on_progress=lambda status: percents.append(status.percent)) == run
    assert percents == [100]  # it has finished before
