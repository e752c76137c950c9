"""Training that was cut off and resumed ends with the very numbers of training that was not."""

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
import torch

from nightly import at_night
from ranks import run_on
from trainers import CNN, Setup, Trained, image_setup, resnet_setup, text_setup, train, without_times
from trainjob.api import Checkpoints

CHANGES = {
    "training": {
        "epochs": 3,
        "gradientAccumulation": 2,
        "optimizer": {"adamW": {"learningRate": 0.01}},
        "scheduler": {"cosine": {}},
        "validateEverySteps": 4,
    },
    "checkpoints": {"everySteps": 2},
}
"""55 rows: 5 batches and 3 steps an epoch; checkpoints after the steps 2, 3, 4, 6, 8 and 9."""
CUTS = {
    "before the first checkpoint": (3, None),
    "inside the first epoch": (4, "epoch-0000-step-00000002"),
    "between epochs": (5, "epoch-0001-step-00000003"),
    "some batches after a checkpoint": (9, "epoch-0001-step-00000004"),
    "inside the last epoch": (14, "epoch-0002-step-00000008"),
}
"""The batches before the power is cut, and the checkpoint that training continues from."""

Unbroken = Callable[[str, int], tuple[Setup, list[Trained]]]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Unbroken:
    @cache
    def trained(kind: str, ranks: int) -> tuple[Setup, list[Trained]]:
        folder = tmp_path_factory.mktemp("unbroken")
        setups: dict[str, Callable[..., Setup]] = {
            "text": text_setup,
            "image": partial(image_setup, model=CNN),
            "pretrained": resnet_setup,
        }
        setup = setups[kind](folder / "run", 55, **CHANGES)
        return setup, run_on(ranks, train, setup)

    return trained


@pytest.mark.parametrize("ranks", [at_night(1), 2, at_night(3)])
@pytest.mark.parametrize(
    ("kind", "cut"),
    [
        *(("text", cut) for cut in CUTS),
        ("image", "inside the first epoch"),
        ("image", "between epochs"),
        ("pretrained", "inside the last epoch"),
    ],
)
def test_resumed_training_ends_with_the_same_numbers(
    tmp_path: Path, unbroken: Unbroken, kind: str, cut: str, ranks: int
):
    """Texts have dropout; images batch normalization, too; so has a pretrained network, whose dropout is not saved."""
    setup, whole = unbroken(kind, ranks)
    again = setup.elsewhere(tmp_path)
    stop_after, checkpoint = CUTS[cut]
    run_on(ranks, train, again, stop_after)
    assert_same_end(run_on(ranks, train, again), whole, checkpoint)
    for records in ("step", "validation", "epoch"):
        assert without_times(again.records(records)) == without_times(setup.records(records))


def assert_same_end(resumed: list[Trained], whole: list[Trained], checkpoint: str | None) -> None:
    for one, other in zip(resumed, whole, strict=True):
        assert one.resumed == checkpoint
        assert one.weights.keys() == other.weights.keys()
        assert [name for name in one.weights if not np.array_equal(one.weights[name], other.weights[name])] == []
        counters = ("epoch", "batch", "step", "loss_sum", "weight", "best", "validations_since_best", "stopped_early")
        assert [getattr(one.state, name) for name in counters] == [getattr(other.state, name) for name in counters]
        assert one.learning_rate == other.learning_rate
        assert one.drawn[-1] == other.drawn[-1]


def test_training_may_be_cut_off_again_and_again(tmp_path: Path, unbroken: Unbroken):
    setup, whole = unbroken("text", 2)
    again = setup.elsewhere(tmp_path)
    names = [run_on(2, train, again, stop_after)[0].resumed for stop_after in (4, 1, 9)]
    assert names == [None, "epoch-0000-step-00000002", "epoch-0000-step-00000002"]
    assert_same_end(run_on(2, train, again), whole, "epoch-0001-step-00000004")


def test_surplus_checkpoints_of_an_attempt_that_could_not_delete_them_are_deleted(tmp_path: Path):
    keeps_all = image_setup(tmp_path / "run", training={"epochs": 3}, checkpoints={"keep": 9})
    run_on(2, train, keeps_all)
    (best, _), *_ = keeps_all.store.ranked()
    names = keeps_all.store.names()
    assert len(names) == 3
    keeps_one = replace(keeps_all, spec=keeps_all.spec.model_copy(update={"checkpoints": Checkpoints(keep=1)}))
    run_on(2, train, keeps_one)
    assert keeps_one.store.names() == [name for name in names if name in (best, names[-1])]


def test_what_a_replaced_attempt_left_in_a_checkpoint_is_passed_over(tmp_path: Path, unbroken: Unbroken):
    """The replaced attempt had one rank more, whose files arrived late."""
    setup, whole = unbroken("text", 2)
    again = setup.elsewhere(tmp_path)
    stop_after, checkpoint = CUTS["some batches after a checkpoint"]
    run_on(2, train, again, stop_after)
    for name in ("state/{}.bin", "state/{}.json", "ranks/{}.pt"):
        folder = tmp_path / "checkpoints" / str(checkpoint)
        shutil.copy(folder / name.format("00001"), folder / name.format("00002"))
    assert_same_end(run_on(2, train, again), whole, checkpoint)


@pytest.mark.parametrize("optimizer", [{"sgd": {"learningRate": 0.1}}, {"adamW": {"learningRate": 0.01}}], ids=str)
def test_float16_is_taken_up_with_the_scale_of_its_losses(tmp_path: Path, optimizer: dict[str, object]):
    training = {"epochs": 3, "precision": "fp16", "optimizer": optimizer, "gradientClipping": 1.0}
    setup = image_setup(tmp_path / "cut", training=training)
    [whole] = run_on(1, train, setup.elsewhere(tmp_path / "whole"))
    run_on(1, train, setup, 6)
    assert_same_end(run_on(1, train, setup), [whole], "epoch-0001-step-00000005")
    assert whole.records[-1]["train_loss"] < whole.records[0]["loss"]
    saved = setup.folder / "checkpoints" / "epoch-0003-step-00000015" / "progress.json"
    assert json.loads(saved.read_text())["scaler"]["scale"] > 1


@pytest.mark.parametrize(("before", "after"), [("fp16", "float32"), ("float32", "fp16")])
def test_the_next_attempt_may_have_another_precision(tmp_path: Path, before: str, after: str):
    """For example on a GPU of another kind."""
    [first] = run_on(1, train, image_setup(tmp_path, training={"precision": before}), 6)
    [second] = run_on(1, train, image_setup(tmp_path, training={"precision": after}))
    assert second.resumed == "epoch-0001-step-00000005"
    assert (first.state.step, second.state.step) == (6, 10)
    assert all(np.isfinite(weights).all() for weights in second.weights.values())


@pytest.mark.parametrize(("before", "after"), [(1, 2), (3, 2)])
def test_an_epoch_that_another_number_of_ranks_ends_holds_each_row_once(tmp_path: Path, before: int, after: int):
    changes = {"training": {"batchSize": 12}, "checkpoints": {"everySteps": 2}}
    setup = image_setup(tmp_path / "cut", rows=48, **changes)
    [whole] = run_on(1, train, setup.elsewhere(tmp_path / "whole"))
    run_on(before, train, setup, 3)
    for trained in run_on(after, train, setup):
        assert trained.resumed == "epoch-0000-step-00000002"
        assert trained.state.step == 8
        for name, expected in whole.weights.items():
            np.testing.assert_allclose(trained.weights[name], expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("before", "after"), [(2, 1), (2, 3), (3, 2)])
def test_another_number_of_ranks_continues_with_random_states_of_its_own(tmp_path: Path, before: int, after: int):
    """Without dropout, and with all rows in each step, the number of ranks changes only rounding."""
    training = {"epochs": 3, "batchSize": 48, "optimizer": {"sgd": {"learningRate": 0.1, "momentum": 0.9}}}
    setup = image_setup(tmp_path / "cut", rows=48, training=training)
    [whole] = run_on(1, train, setup.elsewhere(tmp_path / "whole"))
    run_on(before, train, setup, 1)
    resumed = run_on(after, train, setup)
    for rank, trained in enumerate(resumed):
        assert trained.resumed == "epoch-0001-step-00000001"
        assert trained.state.step == 3
        for name, expected in whole.weights.items():
            np.testing.assert_allclose(trained.weights[name], expected, rtol=1e-4, atol=1e-6)
        seed = setup.spec.training.seed + 1 + rank
        drawn = torch.rand((), generator=torch.Generator().manual_seed(seed)).item()
        assert trained.drawn[0] == (random.Random(seed).random(), np.random.RandomState(seed).random_sample(), drawn)
