"""Defaults of `spec.training` depend on the model, and are written to the run's trainjob.yaml."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from trainjob_files import GOOD, write

from trainjob.api import TrainJob
from trainjob.api.load import load_trainjob
from trainjob.runs.folder import to_dict

TEXT = {"textClassifier": {"pretrained": "org/encoder"}}
FROZEN = {"textClassifier": {"pretrained": "org/encoder", "freezeEncoder": True}}
SCRATCH = {"textClassifier": {"encoder": {}}}


def loaded(folder: Path, model: object, training: object = None, workers: int = 1) -> TrainJob:
    document = yaml.safe_load(GOOD)
    document["spec"] |= {"model": model, "training": training or {}, "workers": {"count": workers}}
    return load_trainjob(write(folder, yaml.safe_dump(document)))


@pytest.mark.parametrize(
    ("model", "rate", "schedule"),
    [
        (TEXT, 1e-4, {"linear": {"warmupFraction": 0.1}}),
        (FROZEN, 1e-1, {"linear": {"warmupFraction": 0.1}}),
        (SCRATCH, 1e-3, {"constant": {"warmupFraction": 0.0}}),
    ],
)
def test_learning_rate_and_schedule_suit_the_model(
    tmp_path: Path, model: object, rate: float, schedule: object
) -> None:
    training = loaded(tmp_path, model).spec.training
    assert training.optimizer.adam_w is not None
    assert training.optimizer.adam_w.learning_rate == rate
    assert training.scheduler.model_dump(by_alias=True, exclude_none=True) == schedule


def test_what_is_said_stays(tmp_path: Path) -> None:
    said = {"optimizer": {"adam": {"learningRate": 0.3}}, "scheduler": {"constant": {}}, "batchSize": 7}
    training = loaded(tmp_path, TEXT, said).spec.training
    assert training.optimizer.adam is not None
    assert (training.optimizer.adam.learning_rate, training.scheduler.chosen, training.batch_size) == (
        0.3,
        "constant",
        7,
    )


def test_another_field_of_the_optimizer_leaves_the_learning_rate_to_the_model(tmp_path: Path) -> None:
    adam = loaded(tmp_path, TEXT, {"optimizer": {"adam": {"weightDecay": 0.5}}}).spec.training.optimizer.adam
    assert adam is not None
    assert (adam.learning_rate, adam.weight_decay) == (1e-4, 0.5)


def test_sgd_keeps_its_own_learning_rate(tmp_path: Path) -> None:
    sgd = loaded(tmp_path, TEXT, {"optimizer": {"sgd": {}}}).spec.training.optimizer.sgd
    assert sgd is not None
    assert sgd.learning_rate == 0.1


@pytest.mark.parametrize(
    ("workers", "rows"), [(1, 32), (2, 32), (3, 33), (5, 35), (32, 32), (33, 33), (10_000, 10_000)]
)
def test_the_batch_divides_among_the_workers(tmp_path: Path, workers: int, rows: int) -> None:
    assert loaded(tmp_path, SCRATCH, workers=workers).spec.training.batch_size == rows


@pytest.mark.parametrize(
    ("model", "usual"),
    [(SCRATCH, ["mostFrequent", "tfidf"]), ({"imageClassifier": {"cnn": {}}}, ["mostFrequent", "pixels"])],
)
def test_the_usual_baselines_suit_the_model_and_can_be_turned_off(
    tmp_path: Path, model: object, usual: list[str]
) -> None:
    def named(**spec: object) -> list[str]:
        document = yaml.safe_load(GOOD)
        document["spec"] |= {"model": model, "dataset": {"train": {"uri": "data"}}} | spec
        if model == SCRATCH:
            document["spec"]["dataset"] |= {"text": ["text"], "label": "label"}
        baselines = load_trainjob(write(tmp_path, yaml.safe_dump(document))).spec.baselines
        assert baselines is not None
        return baselines.named

    assert named() == named(baselines=None) == usual
    assert named(baselines={}) == []
    assert named(baselines={"mostFrequent": {}}) == ["mostFrequent"]


@pytest.mark.parametrize(
    ("kind", "dataset", "expected"),
    [
        ("textClassifier", {"label": "tag"}, "crossEntropy"),
        ("textClassifier", {"labels": ["a", "b"]}, "binaryCrossEntropy"),
        ("textRegressor", {"labels": ["a", "b"]}, "squaredError"),
    ],
)
def test_the_loss_suits_the_labels(tmp_path: Path, kind: str, dataset: dict[str, Any], expected: str) -> None:
    document = yaml.safe_load(GOOD)
    del document["spec"]["dataset"]["label"]
    document["spec"]["dataset"] |= dataset
    document["spec"]["model"] = {kind: document["spec"]["model"]["textClassifier"]}
    job = load_trainjob(write(tmp_path, yaml.safe_dump(document)))
    assert to_dict(job)["spec"]["model"][kind]["loss"] == {expected: {}}
    assert TrainJob.model_validate(to_dict(job)) == job  # as a run keeps it


def test_a_function_has_no_baselines(tmp_path: Path) -> None:
    document = yaml.safe_load(GOOD)
    document["spec"] = {"model": {"function": {"name": "a:b"}}}
    assert load_trainjob(write(tmp_path, yaml.safe_dump(document))).spec.baselines is None


def test_the_run_keeps_what_was_chosen(tmp_path: Path) -> None:
    job = loaded(tmp_path, TEXT, workers=3)
    kept = to_dict(job)["spec"]["training"]
    assert kept["batchSize"] == 33
    assert kept["optimizer"]["adamW"]["learningRate"] == 1e-4
    assert to_dict(job)["spec"]["baselines"] == {"mostFrequent": {}, "tfidf": {}}
    assert kept["scheduler"] == {"linear": {"warmupFraction": 0.1}}
    assert load_trainjob(write(tmp_path, yaml.safe_dump(to_dict(job)))) == TrainJob.model_validate(to_dict(job))
