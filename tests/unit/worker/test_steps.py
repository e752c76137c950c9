"""However many ranks train, the steps are those of a plain loop over the same rows."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau

from ranks import run_on
from trainers import Setup, build_trainer, image_setup, text_setup, train
from trainjob.data.batches.batch import Batch
from trainjob.data.batches.loaders import BucketSampler, InMemoryBatches, TrainingBatches, collate
from trainjob.errors import Diverged
from trainjob.kinds.targets.class_losses import sample_losses
from trainjob.models import build
from trainjob.worker.optim import build_optimizer, build_scheduler

CASES: dict[str, dict[str, Any]] = {
    "momentum": {"optimizer": {"sgd": {"learningRate": 0.1, "momentum": 0.9, "weightDecay": 0.01}}},
    "accumulation": {"gradientAccumulation": 2},
    "one step an epoch": {"gradientAccumulation": 9},
    "clipping": {"gradientClipping": 0.05, "gradientAccumulation": 3},
    "linear": {"optimizer": {"adamW": {"learningRate": 0.01}}, "scheduler": {"linear": {"warmupFraction": 0.3}}},
    "cosine": {"optimizer": {"adam": {"learningRate": 0.01}}, "scheduler": {"cosine": {}}},
}
"""50 rows in batches of 12: the last batch is smaller, and the last group of batches that make a step."""


RowWeights = Callable[[torch.Tensor], torch.Tensor]
"""Returns the weight of each row, from labels [n]."""


def plain(
    setup: Setup, ranks: int, weights_of: RowWeights = torch.ones_like
) -> tuple[dict[str, torch.Tensor], list[dict[str, float]]]:
    """Weights, and loss and learning rate of each step, of a loop in one process over the batches of all ranks.

    A step's gradient is that of the mean loss over the rows of its batches, on all ranks, by their weights.
    """
    training, rows = setup.spec.training, setup.examples["train"]
    torch.manual_seed(training.seed)
    module = build(setup.spec.model, setup.preprocessor).train()
    losses_of = sample_losses(setup.spec.model, setup.preprocessor.target)
    optimizer = build_optimizer(training.optimizer, module.parameters())
    samplers = [BucketSampler(rows.lengths, setup.shard(rank, ranks)) for rank in range(ranks)]
    groups = math.ceil(len(samplers[0]) / training.gradient_accumulation)
    scheduler = build_scheduler(training.scheduler, optimizer, groups * training.epochs)
    assert not isinstance(scheduler, ReduceLROnPlateau)
    steps: list[dict[str, float]] = []
    for epoch in range(training.epochs):
        for sampler in samplers:
            sampler.epoch = epoch
        batches = list(zip(*samplers, strict=True))
        for start in range(0, len(batches), training.gradient_accumulation):
            group = batches[start : start + training.gradient_accumulation]
            collated = _collated(setup, group)
            weights = torch.cat([weights_of(batch.labels) for batch in collated])
            losses = torch.cat([losses_of(module(**batch.inputs), batch.labels) for batch in collated])
            loss = (losses * weights).sum() / weights.sum().clamp(min=1)
            loss.backward()
            if training.gradient_clipping is not None:
                gradients = [parameter.grad for parameter in module.parameters() if parameter.grad is not None]
                norm = torch.cat([gradient.flatten() for gradient in gradients]).norm()
                for gradient in gradients:
                    gradient *= min(1, training.gradient_clipping / norm)
            steps.append({"loss": loss.item(), "learning_rate": optimizer.param_groups[0]["lr"]})
            optimizer.step()
            optimizer.zero_grad()
            if scheduler is not None:
                scheduler.step()
    return module.state_dict(), steps


def _collated(setup: Setup, group: list[tuple[np.ndarray, ...]]):
    return [collate(setup.preprocessor, setup.examples["train"].take(rows)) for batch in group for rows in batch]


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("case", CASES)
def test_steps_are_those_of_a_plain_loop(tmp_path: Path, case: str, ranks: int):
    setup = image_setup(tmp_path, training=CASES[case])
    weights, steps = plain(setup, ranks)
    results = run_on(ranks, train, setup)
    for trained in results:
        for name, expected in weights.items():
            np.testing.assert_allclose(trained.weights[name], expected, rtol=1e-4, atol=1e-6, err_msg=name)
    records = [record for record in results[0].records if record["kind"] == "step"]
    assert [record["step"] for record in records] == list(range(1, len(steps) + 1))
    for record, step in zip(records, steps, strict=True):
        assert record["loss"] == pytest.approx(step["loss"], rel=1e-5)
        assert record["learning_rate"] == pytest.approx(step["learning_rate"], rel=1e-9)


def first_class_alone(labels: torch.Tensor) -> torch.Tensor:
    """Rows of the first class count twice, others not at all: some batches have no weight."""
    return 2 * (labels == 0)


class WeightedBatch(Batch):
    @property
    def weight(self) -> float:
        return float(first_class_alone(self.labels).sum()) * self.is_real


@dataclass
class WeightedBatches:
    batches: TrainingBatches
    weights: list[float]
    """The weights of the batches so far."""

    def epoch(self, epoch: int) -> Iterator[Batch]:
        for batch in self.batches.epoch(epoch):
            weighted = WeightedBatch(batch.inputs, batch.labels, is_real=batch.is_real)
            self.weights.append(weighted.weight)
            yield weighted


def _train_weighted(setup: Setup) -> tuple[dict[str, np.ndarray], list[dict[str, Any]], list[float]]:
    trainer = build_trainer(setup)
    losses_of = trainer.objective.losses
    trainer.objective.losses = lambda answers, batch: losses_of(answers, batch) * first_class_alone(batch.labels)  # pyrefly: ignore[method-assign]
    trainer.batches = batches = WeightedBatches(trainer.batches, [])
    trainer.train()
    weights = {name: value.numpy() for name, value in trainer.module.state_dict().items()}
    return weights, trainer.history.records, batches.weights


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("accumulation", [1, 3])
def test_what_counts_more_weighs_more_on_whatever_rank_it_is(tmp_path: Path, accumulation: int, ranks: int):
    """Batches of 3 rows over all ranks, of which some have no weight on one rank, or on all."""
    setup = image_setup(tmp_path, training={"batchSize": 3 if ranks != 2 else 4, "gradientAccumulation": accumulation})
    weights, steps = plain(setup, ranks, first_class_alone)
    results = run_on(ranks, _train_weighted, setup)
    assert any(weight == 0 for _, _, batches in results for weight in batches)
    for trained, _, _ in results:
        for name, expected in weights.items():
            np.testing.assert_allclose(trained[name], expected, rtol=1e-4, atol=1e-6, err_msg=name)
    logged = [record for record in results[0][1] if record["kind"] == "step"]
    assert [record["loss"] for record in logged] == pytest.approx([step["loss"] for step in steps], rel=1e-4, abs=1e-6)
    taken = [step["loss"] for step in steps if step["loss"]]
    assert len(taken) >= len(steps) / 2


def test_clipping_bounds_the_whole_update(tmp_path: Path):
    """One step with the learning rate 1: the weights move by as much as all gradients together may measure."""
    training = {"epochs": 1, "gradientAccumulation": 9, "optimizer": {"sgd": {"learningRate": 1.0}}}
    moved = {}
    for clipping in (None, 1e-3):
        setup = image_setup(tmp_path, training=training | {"gradientClipping": clipping})
        torch.manual_seed(setup.spec.training.seed)
        before = build(setup.spec.model, setup.preprocessor).state_dict()
        after = run_on(1, train, setup.elsewhere(tmp_path / str(clipping)))[0].weights
        moved[clipping] = math.sqrt(sum(np.square(after[name] - before[name].numpy()).sum() for name in before))
    assert moved[1e-3] == pytest.approx(1e-3, rel=1e-3)
    assert moved[None] > 0.1


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_the_training_loss_is_the_mean_over_all_rows(tmp_path: Path, ranks: int):
    training = {"optimizer": {"sgd": {"learningRate": 1e-12}}, "gradientAccumulation": 2}
    setup = image_setup(tmp_path, training=training)
    torch.manual_seed(setup.spec.training.seed)
    module = build(setup.spec.model, setup.preprocessor)
    records = run_on(ranks, train, setup)[0].records
    for epoch in (0, 1):
        taken = []
        for rank in range(ranks):
            sampler = BucketSampler(setup.examples["train"].lengths, setup.shard(rank, ranks))
            sampler.epoch = epoch
            taken += sampler
        batch = collate(setup.preprocessor, setup.examples["train"].take(np.concatenate(taken)))
        assert len(batch) == 50
        losses = sample_losses(setup.spec.model, setup.preprocessor.target)
        expected = losses(module(**batch.inputs), batch.labels).mean()
        [record] = [record for record in records if record["kind"] == "epoch" and record["epoch"] == epoch + 1]
        assert record["train_loss"] == pytest.approx(expected.item(), rel=1e-5)


def test_steps_are_logged_now_and_then_with_the_mean_loss_since(tmp_path: Path):
    """45 steps an epoch: every second one, besides the first, the last of an epoch, and those with a checkpoint."""
    changes = {"training": {"batchSize": 1}, "checkpoints": {"everySteps": 7}}
    setup = image_setup(tmp_path, rows=45, **changes)
    _, steps = plain(setup, 1)
    records = [record for record in run_on(1, train, setup)[0].records if record["kind"] == "step"]
    checkpoints = [step for step in range(7, 90, 7) if step != 45]
    assert [record["step"] for record in records] == sorted({1, 45, *range(2, 91, 2), *checkpoints})
    assert [record["epoch"] for record in records] == [1 + (record["step"] > 45) for record in records]
    before = 0
    for record in records:
        since = [step["loss"] for step in steps[before : record["step"]]]
        assert record["loss"] == pytest.approx(np.mean(since), rel=1e-4)
        before = record["step"]


def test_of_many_steps_every_fiftieth_is_logged(tmp_path: Path):
    setup = image_setup(tmp_path, rows=1040, training={"batchSize": 1, "epochs": 1})
    records = [record for record in run_on(1, train, setup)[0].records if record["kind"] == "step"]
    assert [record["step"] for record in records] == [1, *range(50, 1040, 50), 1040]


def test_the_rate_counts_the_rows_of_all_ranks(tmp_path: Path):
    for trained in run_on(2, train, image_setup(tmp_path, training={"epochs": 1})):
        rates = [record["samples_per_second"] for record in trained.records if record["kind"] == "step"]
        assert sum(rates) > 50 / trained.seconds  # `fit` took longer than the steps that it measures


def test_bfloat16_is_of_the_forward_pass_alone(tmp_path: Path):
    [full] = run_on(1, train, image_setup(tmp_path / "float32"))
    for weights, types in run_on(2, _train_in_bfloat16, image_setup(tmp_path / "bf16", training={"precision": "bf16"})):
        assert types == {"output": "torch.bfloat16", "weight": "torch.float32", "logits": "torch.float32"}
        for name, expected in full.weights.items():
            assert not np.array_equal(weights[name], expected)
            np.testing.assert_allclose(weights[name], expected, atol=0.03)


def _train_in_bfloat16(setup: Setup) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Trains; the weights, and the types of a layer's output and weights and of what the loss is given."""
    types: dict[str, str] = {}

    def watch(layer: torch.nn.Linear, _: object, output: torch.Tensor) -> None:
        types.update(output=str(output.dtype), weight=str(layer.weight.dtype))

    trainer = build_trainer(setup)
    losses_of = trainer.objective.losses

    def losses(answers: torch.Tensor, batch: Batch) -> torch.Tensor:
        types["logits"] = str(answers.dtype)
        return losses_of(answers, batch)

    trainer.objective.losses = losses  # pyrefly: ignore[method-assign]
    next(layer for layer in trainer.module.modules() if isinstance(layer, torch.nn.Linear)).register_forward_hook(watch)
    trainer.train()
    return {name: value.numpy() for name, value in trainer.module.state_dict().items()}, types


@pytest.mark.parametrize(("precision", "is_fused"), [("float32", True), ("bf16", False), ("fp16", False)])
def test_attention_on_cpus_is_fused_in_float32_alone(tmp_path: Path, precision: str, is_fused: bool):
    trainer = build_trainer(text_setup(tmp_path, training={"precision": precision, "maxSteps": 1}))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        trainer.train()
    assert any("scaled_dot_product" in event.key for event in profile.key_averages()) is is_fused


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_loss_that_diverges_ends_training_on_every_rank(tmp_path: Path, ranks: int):
    setup = image_setup(tmp_path, training={"optimizer": {"sgd": {"learningRate": 1e30}}})
    for message in run_on(ranks, error_of_training, setup):
        assert message == (
            "training diverged: the loss is nan at step 2. Lower the optimizer's learningRate, "
            "add a warm-up (spec.training.scheduler) or set spec.training.gradientClipping."
        )
    assert setup.store.names() == []


def test_a_loss_that_diverges_in_the_last_step_of_an_epoch(tmp_path: Path):
    """The training loss is finite until then; only the validation after it shows what became of the model."""
    training = {"gradientAccumulation": 9, "optimizer": {"sgd": {"learningRate": 1e30}}}
    setup = image_setup(tmp_path, training=training)
    for message in run_on(2, error_of_training, setup):
        assert message.startswith("training diverged: the loss is nan when the model is scored.")
    assert setup.store.names() == []


def error_of_training(setup: Setup) -> str:
    with pytest.raises(Diverged) as error:  # of the type that ends one trial, and not the search
        train(setup)
    return str(error.value)


def test_an_epoch_with_another_number_of_batches_is_an_error(tmp_path: Path):
    setup = image_setup(tmp_path)
    assert run_on(1, _train_with_too_few_batches, setup) == ["epoch 1 had 4 batches, not 5"]


def _train_with_too_few_batches(setup: Setup) -> str:
    trainer = build_trainer(setup)
    fewer = setup.examples["train"].take(np.arange(48))
    trainer.batches = InMemoryBatches(fewer, setup.preprocessor, setup.shard(0, 1))
    with pytest.raises(RuntimeError) as error:
        trainer.train()
    return str(error.value)
