"""The work of a worker around the loop: build, resume, score the test set, finish."""

import hashlib
import json
import random
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from preprocessors import input_of, labels_of
from ranks import run_on
from trainers import CLASSES, CNN, Setup, image_setup, text_setup
from trainjob import Predictor
from trainjob.api.training_status import TrainingStatus
from trainjob.data import Examples, Fitted
from trainjob.errors import DataError, UserError
from trainjob.evaluation import ClassificationScores
from trainjob.kinds.inputs.text import TextInput
from trainjob.launch.worker_errors import WorkerError
from trainjob.progress.channel import Address, ProgressReceiver
from trainjob.runs.checkpoints import CheckpointTensors, files_of
from trainjob.runs.predictions import read_predictions
from trainjob.storage import Folder
from trainjob.worker.distributed import rank
from trainjob.worker.job import WorkerJob
from trainjob.worker.outcome import Outcome
from trainjob.worker.train import train_and_score

NOBODY = Address("127.0.0.1", 1, b"")
"""A driver that is gone: reports to it are lost, and training goes on."""


def with_test_set(setup: Setup) -> Setup:
    assert setup.spec.dataset is not None
    dataset = setup.spec.dataset.model_copy(update={"test": setup.spec.dataset.train})
    examples = setup.examples | {"test": setup.examples["validation"].take(np.arange(7))}
    return replace(setup, spec=setup.spec.model_copy(update={"dataset": dataset}), examples=examples)


def task_of(setup: Setup, driver: Address = NOBODY) -> WorkerJob:
    rows = {name: len(examples) for name, examples in setup.examples.items()}
    fitted = Fitted(setup.preprocessor, "label", None, rows, contents={})
    examples = partial(dict, setup.examples)
    return WorkerJob(setup.spec, Folder(str(setup.folder)), 1, fitted, driver, threads=1, examples=examples)


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_outcome_is_the_best_checkpoints(tmp_path: Path, ranks: int):
    """The learning rate is so high that the later epochs are worse."""
    training = {"epochs": 4, "earlyStopping": {"patience": 2}, "optimizer": {"sgd": {"learningRate": 0.1}}}
    checkpoints = {"metric": "validation_loss", "mode": "max"}
    setup = with_test_set(image_setup(tmp_path, training=training, checkpoints=checkpoints))
    since = time.time()
    outcome, *others = run_on(ranks, train_and_score, task_of(setup))
    assert others == [None] * (ranks - 1)
    assert isinstance(outcome, Outcome)
    epochs = setup.records("epoch")
    best = max(epochs, key=lambda record: record["validation_loss"])
    assert outcome.stopped_early
    assert outcome.epochs == len(epochs) == 3
    assert (outcome.best_epoch, outcome.best_step) == (best["epoch"], best["step"]) != (3, 15)
    assert outcome.best_checkpoint == f"epoch-{best['epoch']:04d}-step-{best['step']:08d}"
    assert isinstance(outcome.validation, ClassificationScores)
    assert outcome.best_value == outcome.validation.loss == best["validation_loss"]
    assert outcome.parameters == outcome.trained_parameters == 16 * 8 + 8 + 8 * 3 + 3
    assert (outcome.precision, outcome.device) == ("float32", "cpu")
    assert outcome.seconds.keys() == {"training", "validation", "checkpoints", "evaluation"}
    assert since <= outcome.entered <= time.time()
    assert isinstance(outcome.test, ClassificationScores)
    assert outcome.test.rows == 7
    saved, model = tmp_path / "checkpoints" / outcome.best_checkpoint, tmp_path / "model"
    CheckpointTensors(Folder(str(saved)), files_of(Folder(str(saved)))).export(saved / "model.safetensors")
    files = {"model.safetensors", "config.json", "preprocessor.json"}
    assert {file.name for file in model.iterdir()} == files | {"digests.json"}
    for name in files:
        assert (model / name).read_bytes() == (saved / name).read_bytes()
    digests = {name: hashlib.sha256((model / name).read_bytes()).hexdigest() for name in files}
    assert json.loads((model / "digests.json").read_bytes()) == digests


@pytest.mark.parametrize("side", ["right", "left"])
def test_nothing_is_trained_where_transformers_would_tokenize_otherwise(tmp_path: Path, side: str):
    """A tokenizer that cuts texts at their end, and an export that says so or not."""
    setup = text_setup(tmp_path, training={"epochs": 1})
    texts = input_of(setup.preprocessor, TextInput)
    texts = replace(texts, tokenizer_config=texts.tokenizer_config | {"truncation_side": side})
    task = task_of(replace(setup, preprocessor=replace(setup.preprocessor, input=texts)))
    text = "red " + "word1 " * 99
    task = replace(task, fitted=replace(task.fitted, sample=["blue", text]))
    if side == "right":
        assert isinstance(run_on(1, train_and_score, task)[0], Outcome)
        return
    with pytest.raises(DataError, match=r'nothing was trained, .* with other tokens: of "red word1 word1'):
        run_on(1, train_and_score, task)
    assert not (tmp_path / "checkpoints").exists()


def test_the_test_set_is_scored_with_the_best_model(tmp_path: Path):
    """If the validation set is the test set, its scores are those of the best epoch."""
    setup = with_test_set(image_setup(tmp_path, training={"epochs": 3}, checkpoints={"mode": "max"}))
    setup.examples["test"] = setup.examples["validation"]
    for outcome in run_on(1, train_and_score, task_of(setup)):
        assert isinstance(outcome, Outcome)
        assert outcome.test == outcome.validation
        assert outcome.best_epoch == 1


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("held", ["test", "validation"])
def test_what_the_best_model_predicts_is_kept_in_the_rows_order(tmp_path: Path, ranks: int, held: str):
    """The third rank has none of the 7 test rows."""
    setup = image_setup(tmp_path)
    setup = with_test_set(setup) if held == "test" else setup
    outcome = run_on(ranks, train_and_score, task_of(setup))[0]
    assert isinstance(outcome, Outcome)
    kept = read_predictions(Folder(str(tmp_path)), "model").to_pydict()
    rows = setup.examples[held]
    assert kept["row"] == list(range(len(rows)))
    assert kept["label"] == [CLASSES[label] for label in labels_of(rows)]
    predictor = Predictor.load(tmp_path)
    images = rows.values.reshape(-1, 4, 4)
    assert kept["prediction"] == predictor.predict(images)
    probabilities = predictor.predict_proba(images)
    np.testing.assert_allclose(kept["probability"], probabilities.max(axis=1), rtol=1e-5)
    np.testing.assert_allclose(kept["probabilities"], -np.sort(-probabilities, axis=1), rtol=1e-5)
    ranked = np.argsort(-probabilities, axis=1, kind="stable")
    assert kept["classes"] == [[CLASSES[index] for index in row] for row in ranked]
    scores = outcome.test if held == "test" else outcome.validation
    assert isinstance(scores, ClassificationScores)
    right = [name == label for name, label in zip(kept["prediction"], kept["label"], strict=True)]
    assert np.mean(right) == scores.accuracy


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("classes", [["cat", "dog"], CLASSES])
def test_of_two_classes_the_validation_rows_are_predicted_too(tmp_path: Path, ranks: int, classes: list[str]):
    setup = with_test_set(image_setup(tmp_path, classes=classes))
    outcome = run_on(ranks, train_and_score, task_of(setup))[0]
    assert isinstance(outcome, Outcome)
    assert (tmp_path / "predictions" / "model-validation.parquet").exists() == (len(classes) == 2)
    assert len(read_predictions(Folder(str(tmp_path)), "model")) == 7
    if len(classes) == 2:
        kept = read_predictions(Folder(str(tmp_path)), "model-validation").to_pydict()
        rows = setup.examples["validation"]
        assert kept["row"] == list(range(len(rows)))
        assert kept["label"] == [classes[label] for label in labels_of(rows)]
        assert kept["prediction"] == Predictor.load(tmp_path).predict(rows.values.reshape(-1, 4, 4))
        assert isinstance(outcome.validation, ClassificationScores)
        right = [name == label for name, label in zip(kept["prediction"], kept["label"], strict=True)]
        assert np.mean(right) == outcome.validation.accuracy


def test_there_may_be_no_test_set(tmp_path: Path):
    [outcome] = run_on(1, train_and_score, task_of(image_setup(tmp_path, training={"epochs": 1, "precision": "bf16"})))
    assert isinstance(outcome, Outcome)
    assert outcome.test is None
    assert outcome.precision == "bf16"


def test_a_worker_continues_from_the_latest_sound_checkpoint(tmp_path: Path):
    setup = with_test_set(image_setup(tmp_path, model=CNN, training={"epochs": 3}, checkpoints={"keep": 9}))
    whole, _ = run_on(2, train_and_score, task_of(setup))
    latest, model = (
        tmp_path / "checkpoints" / "epoch-0003-step-00000015",
        load_file(tmp_path / "model/model.safetensors"),
    )
    (latest / "state" / "00001.bin").write_bytes(b"damaged")
    snapshots: list[TrainingStatus] = []
    with ProgressReceiver(snapshots.append) as receiver:
        again, _ = run_on(2, train_and_score, task_of(setup, receiver.address))
        deadline = time.monotonic() + 30
        while (not snapshots or snapshots[-1].stage != "Evaluating") and time.monotonic() < deadline:
            time.sleep(0.01)
    starting = [each.phase and each.phase.name for each in snapshots if each.stage == "Starting"]
    assert starting == ["loading the model", "waiting for rows", "preparing to train"]
    snapshots = snapshots[len(starting) :]
    assert snapshots[0].message == "continues from epoch-0002-step-00000010"
    assert (snapshots[0].epochs_completed, snapshots[0].epoch, snapshots[0].step) == (2, 3, 10)
    assert snapshots[0].metrics["validation_loss"] == setup.records("epoch")[1]["validation_loss"]
    assert (snapshots[-1].stage, snapshots[-1].eta) == ("Evaluating", None)
    assert isinstance(whole, Outcome)
    assert isinstance(again, Outcome)
    own = {"entered", "seconds"}
    assert again.model_dump(exclude=own) == whole.model_dump(exclude=own)
    assert again.seconds["training"] > 0
    for name, weights in load_file(tmp_path / "model" / "model.safetensors").items():
        np.testing.assert_array_equal(weights, model[name])
    assert [record["epoch"] for record in setup.records("epoch")] == [1, 2, 3]


def test_the_seed_settles_the_weights(tmp_path: Path):
    def weights(seed: int, folder: str) -> dict[str, np.ndarray]:
        setup = image_setup(tmp_path / folder, model=CNN, training={"epochs": 1, "seed": seed})
        run_on(2, train_and_score, task_of(setup))
        return load_file(tmp_path / folder / "model" / "model.safetensors")

    first, again, other = weights(1, "first"), weights(1, "again"), weights(2, "other")
    assert [name for name in first if not np.array_equal(first[name], again[name])] == []
    assert not np.array_equal(first["head.1.weight"], other["head.1.weight"])


def test_each_rank_has_random_states_of_its_own(tmp_path: Path):
    results = run_on(2, _states_after_work, task_of(image_setup(tmp_path, training={"epochs": 1, "seed": 5})))
    for rank_, drawn in enumerate(results):
        seed = 5 + 1 + rank_
        torch_drawn = torch.rand((), generator=torch.Generator().manual_seed(seed)).item()
        assert drawn == (random.Random(seed).random(), np.random.RandomState(seed).random_sample(), torch_drawn)


def _states_after_work(task: WorkerJob) -> tuple[float, float, float]:
    """After its weights are drawn, this model's training uses no random numbers."""
    train_and_score(task)
    return random.random(), float(np.random.random()), torch.rand(()).item()


def test_too_few_rows_for_the_workers(tmp_path: Path):
    setup = image_setup(tmp_path, rows=2)
    for message in run_on(3, _error_of_work, task_of(setup)):
        assert message == "2 training rows are too few for 3 workers: lower spec.workers.count"


def _error_of_work(task: WorkerJob) -> str:
    with pytest.raises(UserError) as error:
        train_and_score(task)
    return str(error.value)


def test_an_exception_travels_with_its_rank_and_traceback(tmp_path: Path):
    task = replace(task_of(image_setup(tmp_path)), examples=_fail_on_rank_1)
    first, second = run_on(2, _worker_error, task)
    assert (first.rank, second.rank) == (0, 1)
    assert (second.exception, second.message) == ("ArithmeticError", f"no rows of {CLASSES}")
    assert "_fail_on_rank_1" in second.traceback
    assert second.time < first.time  # the other fails because of it


def _fail_on_rank_1() -> dict[str, Examples]:
    if rank() == 1:
        raise ArithmeticError(f"no rows of {CLASSES}")
    return {"train": Examples(np.zeros(32, np.uint8), np.arange(3) * 16, np.zeros(2, np.int64))}


def _worker_error(task: WorkerJob) -> WorkerError:
    with pytest.raises(WorkerError) as error:
        train_and_score(task)
    return error.value


def out_of_memory() -> dict[str, Examples]:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB")


def test_too_little_memory_on_a_gpu_is_told_with_what_to_lower(tmp_path: Path):
    task = replace(task_of(image_setup(tmp_path, training={"batchSize": 8})), examples=out_of_memory)
    with pytest.raises(UserError, match=r"too little memory for its 8 rows of each batch of 8: lower spec\.training"):
        run_on(1, train_and_score, task)
