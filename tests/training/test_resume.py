"""A run that is killed and started again ends with the very weights of a run that was not."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from training_runs import STREAMED, Run, assert_equal, inside_second_epoch, kill_driver, kill_worker, write_run

Whole = Callable[[str, bool], Run]


def between_epochs(checkpoints: list[str]) -> bool:
    return any(name.startswith("epoch-0002") for name in checkpoints)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, text_set: Path, image_set: Path) -> Whole:
    """A finished run of a kind. Rows that are kept come in the same order with Ray and without, those streamed in
    another."""

    @cache
    def finished(kind: str, streamed: bool) -> Run:
        data = text_set if kind == "text" else image_set
        changes = {"dataset.loader": "rayData" if streamed else "dataLoader"}
        run = write_run(tmp_path_factory.mktemp("whole"), kind, data, changes, "whole")
        run.first = STREAMED if streamed else None
        run.finish()
        return run

    return finished


@pytest.mark.parametrize(
    ("kind", "loader"),
    [
        ("text", "dataLoader"),
        ("text", "rayData"),
        ("text", "streamed"),
        ("image", "dataLoader"),
    ],
)
def test_the_driver_is_killed_and_then_a_worker(whole: Whole, new_run: Callable[..., Run], kind: str, loader: str):
    streamed = loader == "streamed"
    run = new_run(kind, {"dataset.loader": "rayData" if streamed else loader, "retries": 1})
    run.first = STREAMED if streamed else None
    run.kill_at(inside_second_epoch, kill_driver)
    assert not (run.folder / "summary.json").exists()
    run.kill_at(between_epochs, kill_worker)
    assert (run.folder / "summary.json").exists(), run.output
    assert "continues from epoch-0001" in run.output
    assert "continues from epoch-0002" in run.output
    assert run.read("summary.json")["attempts"] == 2
    assert_same_end(run, whole(kind, streamed))


def assert_same_end(run: Run, whole: Run) -> None:
    assert_equal(run.weights(), whole.weights())
    assert [record["step"] for record in run.records("step")] == [record["step"] for record in whole.records("step")]
    losses = [[record["train_loss"] for record in one.records("epoch")] for one in (run, whole)]
    assert losses[0] == losses[1]
    assert run.read("evaluation.json") == whole.read("evaluation.json")
