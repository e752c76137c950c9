"""A run that is killed and started again ends with the very weights of a run that was not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from training_runs import Run, assert_equal, inside_second_epoch, kill_driver, kill_worker, write_run

Unbroken = tuple[Run, str, dict[str, Any]]

CASES = [
    ("text", "dataLoader"),
    ("text", "rayData"),
    ("text", "streamed"),
    ("image", "dataLoader"),
    ("image", "streamed"),
]


def between_epochs(checkpoints: list[str]) -> bool:
    return any(name.startswith("epoch-0002") for name in checkpoints)


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def unbroken(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, text_set: Path, image_set: Path
) -> Unbroken:
    """A finished run, its kind and what its TrainJob says of the loader."""
    kind, loader = request.param
    changes = {"dataset.loader": "rayData" if loader == "streamed" else loader}
    run = write_run(
        tmp_path_factory.mktemp("unbroken"), kind, text_set if kind == "text" else image_set, changes, "unbroken"
    )
    run.streamed = loader == "streamed"
    run.finish()
    return run, kind, changes


def assert_same_end(run: Run, unbroken: Run) -> None:
    assert_equal(run.weights(), unbroken.weights())
    assert [record["step"] for record in run.records("step")] == [record["step"] for record in unbroken.records("step")]
    losses = [[record["train_loss"] for record in one.records("epoch")] for one in (run, unbroken)]
    assert losses[0] == losses[1]
    assert run.read("evaluation.json") == unbroken.read("evaluation.json")


def test_the_driver_is_killed_and_then_a_worker(unbroken: Unbroken, new_run: Callable[..., Run]):
    whole, kind, changes = unbroken
    run = new_run(kind, {**changes, "retries": 1})
    run.streamed = whole.streamed
    run.kill_at(inside_second_epoch, kill_driver)
    assert not (run.folder / "summary.json").exists()
    run.kill_at(between_epochs, kill_worker)
    assert (run.folder / "summary.json").exists(), run.output
    assert "continues from epoch-0001" in run.output
    assert "continues from epoch-0002" in run.output
    assert_same_end(run, whole)
    assert run.read("summary.json")["attempts"] == 2
