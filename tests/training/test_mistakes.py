"""Mistakes of the user's end with exit code 2 and one message, whichever process finds them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from training_runs import Run, kill_driver

LOADERS = ("dataLoader", "rayData")
SMALL = {"dataset.loader": "dataLoader", "training.epochs": 1, "training.batchSize": 64}

NewRun = Callable[..., Run]


def test_a_batch_that_does_not_divide_among_the_workers(new_run: NewRun):
    message = new_run("text", SMALL).refused("--workers", "3")
    assert "spec.training.batchSize" in message
    assert "must be a multiple of workers.count (64 % 3 = 1)" in message


def test_too_few_rows_for_the_workers(new_run: NewRun, tmp_path: Path):
    rows = tmp_path / "few.csv"
    rows.write_text("title,body,label\n" + "".join(f"a{i},b,{i % 2}\n" for i in range(4)))
    changes = SMALL | {"dataset.train": {"uri": str(rows)}, "dataset.validation": {"fraction": 0.5}}
    message = new_run("text", {**changes, "workers.count": 4, "dataset.test": None}).refused()
    assert message == "2 training rows are too few for 4 workers: lower spec.workers.count\n"


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("title,label\na,red\nb,blue\n", "body"),
        ("title,body,label\n" + "a,b,red\n" * 9 + "a,b,\n" + "a,b,blue\n" * 9, "row 10"),
    ],
    ids=["missing column", "empty label"],
)
def test_bad_training_rows(new_run: NewRun, tmp_path: Path, loader: str, content: str, said: str):
    rows = tmp_path / "bad.csv"
    rows.write_text(content)
    message = new_run("text", SMALL | {"dataset.loader": loader, "dataset.train": {"uri": str(rows)}}).refused()
    assert str(rows) in message
    assert said in message


@pytest.mark.parametrize("loader", LOADERS)
def test_an_unknown_label_in_the_test_rows(new_run: NewRun, tmp_path: Path, loader: str):
    rows = tmp_path / "bad.csv"
    rows.write_text("title,body,label\na,b,red\na,b,purple\n")
    message = new_run("text", SMALL | {"dataset.loader": loader, "dataset.test": {"uri": str(rows)}}).refused()
    assert str(rows) in message
    assert "purple" in message


@pytest.mark.parametrize("loader", LOADERS)
def test_a_loss_that_diverges(new_run: NewRun, loader: str):
    sgd = {"sgd": {"learningRate": 1.0e30}}
    changes = {"dataset.loader": loader, "training.optimizer": sgd, "training.scheduler": None, "retries": 3}
    run = new_run("text", SMALL | changes)
    message = run.refused()
    assert "training diverged: the loss is nan at step" in message
    assert "learningRate" in message
    assert run.read("attempts.json")["failures"] == 0  # none was tried again


def test_a_loss_that_diverges_in_the_last_step(new_run: NewRun):
    """The training loss of one step an epoch is finite; only the validation after it shows what became of the model."""
    changes = {"training.batchSize": 512, "training.optimizer": {"sgd": {"learningRate": 1.0e30}}}
    message = new_run("text", SMALL | changes | {"training.scheduler": None}).refused()
    assert "training has diverged" in message


def test_a_run_of_another_spec(new_run: NewRun):
    run = new_run("text", SMALL | {"training.epochs": 40, "checkpoints.everySteps": 1})
    run.kill_at(bool, kill_driver)
    message = run.refused("--set", "spec.training.seed=1", "--set", "spec.model.textClassifier.dropout=0.3")
    assert "spec.training.seed: 42 → 1" in message
    assert "spec.model.textClassifier.dropout: 0.1 → 0.3" in message
    assert message.count("→") == 2
    assert "--fresh" in message


def test_the_same_run_twice_at_once(new_run: NewRun):
    run = new_run("text", SMALL | {"training.epochs": 40, "checkpoints.everySteps": 1})

    def try_another(driver: int) -> None:
        assert "under way in another process" in run.refused()
        kill_driver(driver)

    run.kill_at(bool, try_another)


def test_storage_that_cannot_be_written(new_run: NewRun, tmp_path: Path):
    (tmp_path / "file").touch()
    message = new_run("text", SMALL | {"storage.uri": str(tmp_path / "file")}).refused()
    assert str(tmp_path / "file") in message


def test_s3_that_does_not_answer(new_run: NewRun, monkeypatch: pytest.MonkeyPatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    changes: dict[str, Any] = {"storage": {"uri": "s3://bucket/runs", "endpoint": "http://127.0.0.1:1"}}
    message = new_run("text", SMALL | changes).refused()
    assert "the server does not answer: check spec.storage.endpoint" in message
