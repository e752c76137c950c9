"""The end of each epoch: validation, early stopping, plateaus, checkpoints, records and reports."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from ranks import run_on
from trainers import CNN, TEXT, Setup, build_trainer, image_setup, text_setup, train
from trainjob.api.training_status import CheckpointStatus
from trainjob.data.batches.loaders import collate
from trainjob.evaluation import ClassificationScores
from trainjob.kinds.targets.class_losses import sample_losses
from trainjob.models import load_model
from trainjob.runs.model import local_copy
from trainjob.storage import Folder

ONE_STEP = {"gradientAccumulation": 9}
"""An epoch."""


def losses(*values: float) -> list[tuple[float, int]]:
    return [(value, 5) for value in values]


def scripted(folder: Path, script: list[tuple[float, int]], **changes: Any) -> Setup:
    training = {"epochs": len(script), **ONE_STEP, **changes.pop("training", {})}
    return replace(image_setup(folder, rows=12, training=training, **changes), script=script)


def test_training_goes_through_all_epochs_without_early_stopping(tmp_path: Path):
    [trained] = run_on(1, train, scripted(tmp_path, losses(1, 2, 2, 2, 2)))
    assert (trained.state.epoch, trained.state.step, trained.state.stopped_early) == (5, 5, False)
    assert (trained.state.best, trained.state.validations_since_best) == (1, 4)


@pytest.mark.parametrize(
    ("early", "script", "epochs"),
    [
        ({"patience": 2}, losses(3, 2, 2, 1.9, 2, 2, 2, 2), 6),
        ({"patience": 1}, losses(3, 2, 2, 1), 3),
        ({"patience": 2, "minDelta": 0.5}, losses(3, 2.5, 2.4, 1, 1, 1, 1), 6),
        ({"patience": 2, "minDelta": 0.5}, losses(3, 2.6, 2.5, 2.4, 1, 1), 3),
        ({"patience": 3}, losses(3, 2, 1), 3),
    ],
)
def test_early_stopping_counts_the_epochs_since_the_best(
    tmp_path: Path, early: dict[str, Any], script: list[tuple[float, int]], epochs: int
):
    """A value must be better by more than `minDelta`: 2.5 after 3 is not, 2.4 after 3 is."""
    setup = scripted(tmp_path, script, training={"earlyStopping": early})
    for trained in run_on(2, train, setup):
        assert trained.state.epoch == epochs
        assert trained.state.stopped_early == (trained.state.validations_since_best == early["patience"])
    assert [record["epoch"] for record in setup.records("epoch")] == list(range(1, epochs + 1))


def test_validation_inside_an_epoch_may_find_the_best_model_and_end_training(tmp_path: Path):
    """5 steps an epoch, validated after the steps 2, 4, 5, 6 and 8, the third without a better value."""
    training = {"epochs": 4, "validateEverySteps": 2, "earlyStopping": {"patience": 3}, "gradientAccumulation": 1}
    setup = replace(image_setup(tmp_path, training=training), script=losses(3, 1, 2, 2, 2, 0))
    for trained in run_on(2, train, setup):
        assert (trained.state.epoch, trained.state.step, trained.state.stopped_early) == (2, 8, True)
    assert [(each["epoch"], each["step"]) for each in setup.records("validation")] == [(1, 2), (1, 4), (2, 6)]
    assert [(each["epoch"], each["step"]) for each in setup.records("epoch")] == [(1, 5), (2, 8)]
    assert setup.store.names() == ["epoch-0000-step-00000004", "epoch-0002-step-00000008"]
    assert setup.store.ranked()[0][0] == setup.store.names()[0]
    [again] = run_on(1, train, setup)
    assert (again.resumed, again.drawn) == (setup.store.names()[1], [])


@pytest.mark.parametrize(("mode", "epochs"), [(None, 4), ("max", 4), ("min", 3)])
def test_more_is_better_where_the_metric_or_the_mode_says_so(tmp_path: Path, mode: str | None, epochs: int):
    script = [(1.0, right) for right in (5, 6, 6, 6, 6)]
    checkpoints = {"metric": "validation_accuracy"} | ({"mode": mode} if mode else {})
    setup = scripted(tmp_path, script, training={"earlyStopping": {"patience": 2}}, checkpoints=checkpoints)
    [trained] = run_on(1, train, setup)
    assert trained.state.epoch == epochs
    assert trained.state.best == (0.5 if mode == "min" else 0.6)


def test_training_that_stopped_early_does_not_go_on_when_it_is_resumed(tmp_path: Path):
    setup = scripted(tmp_path, losses(1, 2, 3), training={"earlyStopping": {"patience": 1}})
    [first] = run_on(1, train, setup)
    assert (first.state.epoch, first.state.stopped_early) == (2, True)
    [second] = run_on(1, train, setup)
    assert second.resumed == "epoch-0002-step-00000002"
    assert (second.state.epoch, second.state.stopped_early, second.drawn) == (2, True, [])


def test_patience_counts_on_after_a_break(tmp_path: Path):
    script = losses(1, 2, 2, 2)
    setup = scripted(tmp_path, script, training={"earlyStopping": {"patience": 3, "minDelta": 0.5}})
    [first] = run_on(1, train, setup, 2)
    assert first.state.validations_since_best == 1
    [second] = run_on(1, train, replace(setup, script=script[2:]))
    assert (second.resumed, second.state.epoch) == ("epoch-0002-step-00000002", 4)
    assert second.state.stopped_early


def test_a_plateau_of_the_validation_loss_lowers_the_learning_rate(tmp_path: Path):
    plateau = {"reduceOnPlateau": {"factor": 0.5, "patience": 1}}
    setup = scripted(tmp_path, losses(3, 2, 2, 2, 2, 2, 1), training={"scheduler": plateau})
    trained = run_on(2, train, setup)
    assert [record["learning_rate"] for record in setup.records("step")] == [0.1, 0.1, 0.1, 0.1, 0.05, 0.05, 0.025]
    assert [one.learning_rate for one in trained] == [0.025, 0.025]
    [resumed] = run_on(1, train, replace(setup, spec=setup.spec))
    assert resumed.learning_rate == 0.025


@pytest.mark.parametrize(
    ("checkpoints", "kept"),
    [
        ({}, [3, 6]),
        ({"keep": 2}, [3, 4, 6]),
        ({"keep": 9}, [1, 2, 3, 4, 5, 6]),
        ({"metric": "validation_accuracy", "keep": 2}, [1, 5, 6]),
        ({"metric": "validation_accuracy", "mode": "min"}, [4, 6]),
    ],
)
def test_the_best_checkpoints_stay_and_the_latest(tmp_path: Path, checkpoints: dict[str, Any], kept: list[int]):
    """The earlier of equal ones is the better."""
    script = [(3, 7), (2, 5), (1, 4), (1.5, 2), (2.5, 6), (5, 5)]
    setup = scripted(tmp_path, script, checkpoints=checkpoints)
    run_on(1, train, setup)
    assert setup.store.names() == [f"epoch-{epoch:04d}-step-{epoch:08d}" for epoch in kept]


PARTS = (("state", "bin"), ("state", "json"), ("ranks", "pt"))
"""The files of each rank in a checkpoint: folders and suffixes."""


def checkpoints_seen(snapshots: list[Any]) -> list[CheckpointStatus]:
    """Latest checkpoints in the order in which they were reported."""
    seen: list[CheckpointStatus] = []
    for snapshot in snapshots:
        latest = snapshot.latest_checkpoint
        if latest is not None and latest not in seen:
            seen.append(latest)
    return seen


@pytest.mark.parametrize("ranks", [1, 2])
def test_checkpoints_inside_epochs_are_at_the_steps_asked_for(tmp_path: Path, ranks: int):
    """5 steps an epoch; the tenth ends one, and needs no checkpoint besides."""
    setup = image_setup(tmp_path, training={"epochs": 3}, checkpoints={"everySteps": 2, "keep": 9})
    reported = checkpoints_seen(run_on(ranks, train, setup)[0].snapshots)
    assert [(seen.step, seen.value is None) for seen in reported] == [
        (2, True), (4, True), (5, False), (6, True), (8, True), (10, False), (12, True), (14, True), (15, False),
    ]  # fmt: skip
    names = [f"epoch-{epoch:04d}-step-{5 * epoch:08d}" for epoch in (1, 2, 3)]
    assert setup.store.names() == names
    assert reported[-1].uri == setup.store.uri(names[-1])


@pytest.mark.parametrize("model", [CNN, TEXT], ids=["image", "text"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_checkpoint_holds_the_very_model_that_was_validated(tmp_path: Path, model: dict[str, Any], ranks: int):
    """Batch normalization has other statistics on each rank after a step: those of rank 0 are saved and scored."""
    make = image_setup if model is CNN else text_setup
    setup = make(tmp_path, model=model, training={"epochs": 2}, checkpoints={"keep": 2})
    results = run_on(ranks, train, setup)
    weights: dict[str, np.ndarray] = {}
    for name, record in zip(setup.store.names(), setup.records("epoch"), strict=True):
        folder = tmp_path / "checkpoints" / name
        with local_copy(Folder(str(folder))) as copy:
            module, preprocessor = load_model(copy)
            weights = load_file(copy / "model.safetensors")
        batch = collate(preprocessor, setup.examples["validation"])
        loss = sample_losses(setup.spec.model, preprocessor.target)(module(**batch.inputs), batch.labels).mean()
        assert record["validation_loss"] == pytest.approx(loss.item(), rel=1e-5)
        saved = ClassificationScores.model_validate_json((folder / "evaluation.json").read_bytes())
        assert saved.as_metrics("validation").items() <= record.items()
        manifest = setup.store.manifest(name)
        assert manifest is not None
        assert manifest.metrics == saved.as_metrics("validation") | {"train_loss": record["train_loss"]}
        parts = {f"{name}/{rank:05d}.{end}" for rank in range(ranks) for name, end in PARTS}
        assert manifest.files.keys() >= parts | {"config.json", "preprocessor.json", "progress.json"}
    for name, saved in weights.items():
        for trained in results:
            np.testing.assert_array_equal(trained.weights[f"network.{name}"], saved)


def test_records_are_written_before_the_checkpoint_that_ends_them(tmp_path: Path):
    setup = image_setup(tmp_path, checkpoints={"everySteps": 3})
    run_on(1, train, setup, 9)  # the power is cut before the last step of the second epoch
    steps, epochs = setup.records("step"), setup.records("epoch")
    assert setup.store.names()[-1] == "epoch-0001-step-00000009"
    assert [record["step"] for record in steps] == list(range(1, 10))
    assert [(record["epoch"], record["step"]) for record in epochs] == [(1, 5)]
    assert not (tmp_path / "checkpoints" / "epoch-0001-step-00000009" / "evaluation.json").exists()


def test_records_and_tensorboard_hold_the_same_finite_numbers(tmp_path: Path):
    setup = image_setup(tmp_path)
    run_on(2, train, setup)
    names = {"step": {"loss", "learning_rate", "samples_per_second"}, "epoch": VALIDATION | {"train_loss"}}
    board = EventAccumulator(str(tmp_path / "tensorboard"))
    board.Reload()
    for kind, values in names.items():
        records = setup.records(kind)
        for record in records:
            assert record.keys() == {"kind", "step", "epoch", "time"} | values
            assert all(math.isfinite(record[value]) for value in values)
        for value in values:
            shown = [(event.step, event.value) for event in board.Scalars(f"{kind}/{value}")]
            assert shown == [(record["step"], pytest.approx(record[value], rel=1e-6)) for record in records]
    times = [json.loads(line)["time"] for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert times == sorted(times)


VALIDATION = {"validation_loss", "validation_accuracy", "validation_precision", "validation_recall", "validation_f1"}


def test_rank_0_reports_each_step_and_checkpoint(tmp_path: Path):
    script = [(2.0, 5), (1.0, 6), (3.0, 7)]
    setup = replace(image_setup(tmp_path, rows=24, training={"epochs": 3}), script=script)
    first, second = run_on(2, train, setup)
    assert second.snapshots == []
    begin, *rest = first.snapshots
    assert (begin.stage, begin.epoch, begin.step, begin.steps, begin.percent) == ("Training", 1, 0, 6, 0.0)
    steps = [snapshot for snapshot in rest if snapshot.step != 0]
    records = [record for record in first.records if record["kind"] == "step"]
    assert [record["step"] for record in records] == [1, 2, 3, 4, 5, 6]
    for record in records:
        [*_, snapshot] = [snapshot for snapshot in steps if snapshot.step == record["step"]]
        assert (snapshot.epoch, snapshot.percent) == (record["epoch"], min(99.9, round(100 * record["step"] / 6, 1)))
        assert (snapshot.loss, snapshot.learning_rate) == (record["loss"], record["learning_rate"])
        assert snapshot.samples_per_second == record["samples_per_second"]
        assert snapshot.eta is not None
    last = rest[-1]
    assert (last.epochs_completed, last.eta) == (3, 0.0)
    assert last.metrics["validation_loss"] == 3.0
    assert last.latest_checkpoint is not None
    assert last.best_checkpoint is not None
    assert (last.latest_checkpoint.step, last.latest_checkpoint.value) == (6, 3.0)
    assert (last.best_checkpoint.step, last.best_checkpoint.value) == (4, 1.0)
    assert last.best_checkpoint.metric == "validation_loss"


def test_wall_time_is_counted_by_stage_and_over_all_attempts(tmp_path: Path):
    """Each batch takes a tenth of a second to come, before which and after which there is more to do."""
    setup = image_setup(tmp_path, training={"epochs": 2}, checkpoints={"everySteps": 3})
    [first] = run_on(1, train, setup, 7, 0.1)
    assert first.state.seconds.keys() == {"training", "validation", "checkpoints"}
    assert all(seconds > 0 for seconds in first.state.seconds.values())
    assert 0.7 <= first.state.seconds["training"] <= sum(first.state.seconds.values()) <= first.seconds
    [second] = run_on(1, train, setup, None, 0.1)
    assert second.resumed == "epoch-0001-step-00000006"
    assert second.state.seconds["training"] >= 1.1  # six batches before the checkpoint and five after it
    assert sum(second.state.seconds.values()) <= first.seconds + second.seconds


def test_a_new_trainer_has_the_steps_of_all_epochs_before_it(tmp_path: Path):
    setup = image_setup(tmp_path, training={"epochs": 4, "gradientAccumulation": 2})
    assert run_on(1, _steps, setup) == [12]


def _steps(setup: Setup) -> int:
    return build_trainer(setup).plan.steps


@pytest.mark.parametrize(("most", "ends"), [(7, [3, 6, 7]), (6, [3, 6]), (2, [2]), (100, [3, 6, 9, 12])])
def test_the_last_step_ends_its_epoch(tmp_path: Path, most: int, ends: list[int]):
    training = {"epochs": 4, "gradientAccumulation": 2, "maxSteps": most, "scheduler": {"linear": {}}}
    setup = image_setup(tmp_path, training=training)
    [trained] = run_on(1, train, setup)
    assert [record["step"] for record in setup.records("epoch")] == ends
    assert (trained.state.epoch, trained.state.step, trained.learning_rate) == (len(ends), ends[-1], 0)
    [again] = run_on(1, train, setup)
    assert again.resumed == f"epoch-{len(ends):04d}-step-{ends[-1]:08d}"
    assert (again.state.step, again.drawn) == (ends[-1], [])


def test_training_that_is_past_a_last_step_set_lower_is_over(tmp_path: Path):
    run_on(1, train, image_setup(tmp_path, training={"epochs": 2}))
    [again] = run_on(1, train, image_setup(tmp_path, training={"epochs": 4, "maxSteps": 2}))
    assert (again.resumed, again.state.step, again.drawn) == ("epoch-0002-step-00000010", 10, [])
