"""Ranks come and go in the midst of an epoch: each row is learned once, in the same batches, from a checkpoint on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranks import run_on
from trainers import CNN, TEXT, Setup, image_setup, text_setup, train

CHANGES: dict[str, Any] = {
    "training": {"epochs": 2, "batchSize": 12, "optimizer": {"sgd": {"learningRate": 0.1, "momentum": 0.9}}},
    "workers": {"count": 3, "minimum": 2},
}
"""50 rows: 5 batches an epoch, of which the last has 2 rows, for up to 3 ranks."""


def plain_text_setup(folder: Path, **changes: Any) -> Setup:
    return text_setup(folder, model={"textClassifier": TEXT["textClassifier"] | {"dropout": 0.0}}, **changes)


@pytest.mark.parametrize("setup_of", [image_setup, plain_text_setup])
def test_an_epoch_of_three_then_two_then_three_ranks_is_that_of_one(tmp_path: Path, setup_of: Callable[..., Setup]):
    setup = setup_of(tmp_path / "run", **CHANGES)
    alone = setup.elsewhere(tmp_path / "alone")
    [whole] = run_on(1, train, alone)
    assert whole.state.step == 10
    for ranks, told, step in [(3, (2, 2), 2), (2, (1, 1), 3)]:
        stopped = run_on(ranks, train, setup, None, 0.0, told)
        assert {each.state.step for each in stopped} == {step}
    for trained in run_on(3, train, setup):
        assert trained.resumed == "epoch-0000-step-00000003"
        assert trained.state.step == 10
        for name, expected in whole.weights.items():
            np.testing.assert_allclose(trained.weights[name], expected, rtol=1e-4, atol=1e-6, err_msg=name)
    losses, expected = ([each["train_loss"] for each in one.records("epoch")] for one in (setup, alone))
    assert losses == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("step", [4, 5, 9])
def test_who_is_told_to_stop_about_the_end_of_an_epoch_goes_on_to_the_same_end(tmp_path: Path, step: int):
    setup = image_setup(tmp_path / "run", model=CNN, **CHANGES)
    whole = run_on(2, train, setup.elsewhere(tmp_path / "whole"))
    stopped = run_on(2, train, setup, None, 0.0, (1, step))
    assert {each.state.step for each in stopped} == {step}
    for resumed, other in zip(run_on(2, train, setup), whole, strict=True):
        assert resumed.state.step == other.state.step == 10
        assert all(np.array_equal(resumed.weights[name], weights) for name, weights in other.weights.items())


@pytest.mark.parametrize("most", [3, 5])
def test_who_is_told_to_stop_at_the_last_step_ends_training(tmp_path: Path, most: int):
    setup = image_setup(tmp_path / "run", **CHANGES | {"training": CHANGES["training"] | {"maxSteps": most}})
    [trained] = run_on(1, train, setup, None, 0.0, (0, most))
    assert [record["step"] for record in trained.records if record["kind"] == "epoch"] == [most]
