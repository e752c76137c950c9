"""A model whose weights are sharded over the workers is trained as one of which each worker has a copy."""

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from test_language_model_training import adapter_setup
from test_language_model_training import setup as language_setup
from torch.distributed.tensor import DTensor
from transformers.models.auto.modeling_auto import AutoModelForCausalLM

from nightly import at_night
from ranks import run_on
from trainers import CPU, TEXT, Setup, Trained, build_trainer, text_setup, train
from trainjob.api import Model, TrainJobSpec
from trainjob.errors import UserError
from trainjob.evaluation import ClassificationScores, Scores
from trainjob.models import load_language_model, load_model
from trainjob.runs.model import local_copy
from trainjob.storage import Folder
from trainjob.worker.placement import build_for, bytes_of, is_to_be_sharded, mesh_shape, shard

pytestmark = pytest.mark.slow

GIB = 2**30
on_ranks = partial(run_on, new=True)
"""Runs a function in new processes: FSDP would reuse the meshes of an earlier group."""


def spec_with(spec: TrainJobSpec, **training: Any) -> TrainJobSpec:
    document = spec.model_dump(by_alias=True, exclude_unset=True)
    document["training"] |= training
    document["workers"] = {"count": 2}
    return TrainJobSpec.model_validate(document)


def with_training(setup: Setup, folder: Path, **training: Any) -> Setup:
    return replace(setup, folder=folder, spec=spec_with(setup.spec, **training))


def texts(folder: Path) -> Setup:
    training = {"epochs": 3, "gradientAccumulation": 2, "gradientClipping": 0.5}
    optimizer = {"adamW": {"learningRate": 0.01}}
    model = {"textClassifier": TEXT["textClassifier"] | {"encoder": {"layers": 2, "hiddenSize": 18, "heads": 3}}}
    changes = {"training": training | {"optimizer": optimizer}, "checkpoints": {"everySteps": 2, "keep": 9}}
    return text_setup(folder, 55, model, **changes)


def language(folder: Path) -> Setup:
    setup = language_setup(folder)
    return replace(setup, spec=spec_with(setup.spec, epochs=3))


def adapter(folder: Path) -> Setup:
    setup = adapter_setup(folder)
    return replace(setup, spec=spec_with(setup.spec, epochs=3))


def in_bfloat16(folder: Path, has_adapter: bool) -> Setup:
    """A pretrained decoder of which bfloat16 weights are stored."""
    setup = adapter(folder)
    pretrained = str(setup.spec.model.pretrained)
    AutoModelForCausalLM.from_pretrained(pretrained, dtype=torch.bfloat16).save_pretrained(pretrained)
    if has_adapter:
        return setup
    model = Model.model_validate({"causalLM": {"pretrained": pretrained, "maxLength": 32}})
    return replace(setup, spec=setup.spec.model_copy(update={"model": model}))


KINDS = {
    "text": texts,
    "language": language,
    "adapter": adapter,
    "bfloat16": partial(in_bfloat16, has_adapter=False),
    "bfloat16 with adapter": partial(in_bfloat16, has_adapter=True),
}


def losses(setup: Setup) -> list[float]:
    steps = [record["loss"] for record in setup.records("step")]
    return steps + [record["validation_loss"] for record in setup.records("epoch")]


@pytest.mark.parametrize(
    ("kind", "training"),
    [
        ("text", {}),
        at_night("text", {"activationCheckpointing": True}),
        ("language", {}),
        at_night("language", {"precision": "bf16"}),
        ("adapter", {"activationCheckpointing": True}),
        at_night("bfloat16", {}),
        ("bfloat16 with adapter", {}),
    ],
)
def test_losses_and_weights_are_those_of_copies(tmp_path: Path, kind: str, training: dict[str, Any]):
    """Both start from one checkpoint, with dropout of the same seeds."""
    copies = with_training(KINDS[kind](tmp_path / "copies"), tmp_path / "copies", **training)
    run_on(2, train, copies, 7)
    shutil.copytree(copies.folder, tmp_path / "sharded")
    sharded = with_training(copies, tmp_path / "sharded", sharding="full", **training)
    expected, found = run_on(2, train, copies), on_ranks(2, train, sharded)
    assert expected[0].resumed == found[0].resumed is not None
    tolerance = 2e-2 if training.get("precision") == "bf16" else 1e-4
    np.testing.assert_allclose(losses(sharded), losses(copies), rtol=tolerance)
    if "precision" not in training:
        for name, weights in expected[0].weights.items():
            np.testing.assert_allclose(found[0].weights[name], weights, rtol=1e-3, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("kind", ["text", at_night("adapter")])
def test_training_that_was_cut_off_goes_on_exactly(tmp_path: Path, kind: str):
    whole = with_training(KINDS[kind](tmp_path / "whole"), tmp_path / "whole", sharding="full")
    cut = whole.elsewhere(tmp_path / "cut")
    expected = on_ranks(2, train, whole)
    on_ranks(2, train, cut, 8)
    found = on_ranks(2, train, cut)
    assert found[0].resumed is not None
    for name, weights in expected[0].weights.items():
        np.testing.assert_array_equal(found[0].weights[name], weights, err_msg=name)
    assert losses(cut) == losses(whole)


@pytest.mark.parametrize("ranks", [at_night(1), 3])
def test_another_number_of_ranks_goes_on(tmp_path: Path, ranks: int):
    """Without dropout, and with all rows in each step, the number of ranks changes only rounding."""
    model = {"textClassifier": TEXT["textClassifier"] | {"dropout": 0.0}}
    training = {"epochs": 3, "batchSize": 48, "optimizer": {"adamW": {"learningRate": 0.01}}}
    setup = text_setup(tmp_path / "cut", 48, model, training=training)
    setup = with_training(setup, setup.folder, sharding="full")
    whole = on_ranks(2, train, setup.elsewhere(tmp_path / "whole"))
    on_ranks(2, train, setup, 1)
    found = on_ranks(ranks, train, setup)
    assert found[0].resumed == "epoch-0001-step-00000001"
    for name, weights in whole[0].weights.items():
        np.testing.assert_allclose(found[0].weights[name], weights, rtol=1e-3, atol=1e-4, err_msg=name)


def _score(setup: Setup) -> Scores:
    trainer = build_trainer(setup)
    return trainer.scorer.score(trainer.module, "validation")


@pytest.mark.parametrize("batch_size", [6, 24])
def test_ranks_with_fewer_batches_take_part_until_all_are_scored(tmp_path: Path, batch_size: int):
    """23 rows in batches of 3: rank 0 has more; or of 24, where only rank 0 has one."""
    setup = with_training(text_setup(tmp_path), tmp_path, sharding="full", batchSize=batch_size)
    setup = replace(setup, examples=setup.examples | {"validation": setup.examples["validation"].take(np.arange(9))})
    for scored in on_ranks(2, _score, setup):
        assert isinstance(scored, ClassificationScores)
        assert scored.rows == 9


def _shards(setup: Setup, shape: tuple[int, int]) -> dict[str, tuple[int, Any]]:
    """The number of values of each weight that this rank holds, and the weight's size, by name."""
    module = build_for(setup.spec.model, setup.spec.training, setup.preprocessor, CPU)
    assert all(weight.is_meta for weight in module.parameters())
    shard(module, setup.spec.training, CPU, shape)
    found: dict[str, tuple[int, Any]] = {}
    for name, weight in module.named_parameters():
        assert isinstance(weight, DTensor)
        found[name] = weight.to_local().numel(), weight.full_tensor().detach().numpy()
    return found


@pytest.mark.parametrize("shape", [(1, 4), (2, 2)])
def test_each_rank_has_its_share_of_initial_weights(tmp_path: Path, shape: tuple[int, int]):
    setup = with_training(language(tmp_path), tmp_path, sharding="full")
    ranks = on_ranks(4, _shards, setup, shape)
    for name, (_, whole) in ranks[0].items():
        assert sum(found[name][0] for found in ranks) == shape[0] * whole.size, name
        assert all(np.array_equal(found[name][1], whole) for found in ranks), name
        if whole.ndim == 2:
            assert 0.01 < whole.std() < 0.03, name  # as transformers initializes matrices


def _shards_of_files(setup: Setup) -> dict[str, Any]:
    module = build_for(setup.spec.model, setup.spec.training, setup.preprocessor, CPU)
    assert {weight.dtype for weight in module.parameters()} == {torch.bfloat16}
    shard(module, setup.spec.training, CPU, (1, 2))
    shards = {name: weight for name, weight in module.named_parameters() if isinstance(weight, DTensor)}
    return {name: weight.full_tensor().detach().numpy() for name, weight in shards.items()}


def test_shards_of_a_pretrained_model_are_what_its_files_have(tmp_path: Path):
    setup = with_training(in_bfloat16(tmp_path / "run", has_adapter=False), tmp_path / "run", sharding="full")
    saved = load_file(tmp_path / "base" / "model.safetensors")
    for found in on_ranks(2, _shards_of_files, setup):
        assert found.keys() == {f"network.{name}" for name in saved}
        for name, weight in saved.items():
            np.testing.assert_array_equal(found[f"network.{name}"], weight.float().numpy(), err_msg=name)


def _checkpoint_of_shards(setup: Setup) -> tuple[list[Trained], Folder]:
    sharded = with_training(setup, setup.folder, sharding="full")
    trained = on_ranks(2, train, sharded)
    name = sharded.store.latest()
    assert name is not None
    return trained, sharded.store / name


def test_a_checkpoint_of_shards_is_a_model(tmp_path: Path):
    trained, checkpoint = _checkpoint_of_shards(texts(tmp_path / "run"))
    with local_copy(checkpoint) as folder:
        module, _ = load_model(folder)
        weights = load_file(folder / "model.safetensors")
    assert type(module.network).__name__ == "ModernBertForSequenceClassification"
    for key, weight in weights.items():
        np.testing.assert_array_equal(trained[0].weights[f"network.{key}"], weight.numpy())


def test_a_checkpoint_of_shards_with_an_adapter_holds_that_alone(tmp_path: Path):
    trained, checkpoint = _checkpoint_of_shards(adapter(tmp_path / "run"))
    with local_copy(checkpoint) as folder:
        module, _ = load_language_model(folder)
        saved = load_file(folder / "adapter_model.safetensors")
        assert not (folder / "model.safetensors").exists()
    assert saved.keys() == module.weights.keys()
    for key, weight in module.network.state_dict().items():
        np.testing.assert_array_equal(trained[0].weights[f"network.{key}"], weight.numpy(), err_msg=key)


def test_what_is_not_trained_takes_its_weights_alone(tmp_path: Path):
    setup = adapter(tmp_path / "run")
    module = build_for(setup.spec.model, setup.spec.training, setup.preprocessor, CPU)
    trained = sum(weight.numel() for weight in module.weights.values())
    whole = sum(weight.numel() for weight in module.parameters())
    assert 0 < trained < whole
    assert bytes_of(module) == 16 * trained + 4 * (whole - trained)


def test_fp16_is_refused(tmp_path: Path):
    setup = with_training(language(tmp_path), tmp_path, sharding="full", precision="fp16")
    said = "spec.training.precision: a sharded model is trained in bf16 or float32, not in fp16"
    assert on_ranks(2, _refused, setup) == [said] * 2


def _refused(setup: Setup) -> str:
    with pytest.raises(UserError) as refused:
        build_trainer(setup)
    return str(refused.value)


@pytest.mark.parametrize(
    ("sharding", "gib", "memory", "workers", "expected"),
    [
        ("none", 1000, 80, 8, False),
        ("full", 1, 80, 8, True),
        ("full", 1, 80, 1, False),
        ("full", 1, None, 2, True),
        ("auto", 39, 80, 8, False),
        ("auto", 41, 80, 8, True),
        ("auto", 41, 80, 1, False),
        ("auto", 1000, None, 8, False),
    ],
)
def test_auto_shards_what_takes_more_than_half_of_a_gpu(
    sharding: str, gib: int, memory: int | None, workers: int, expected: bool
):
    """The size of weights, gradients and optimizer state, and a GPU's memory, both in GiB."""
    bytes_of_gpu = None if memory is None else memory * GIB
    assert is_to_be_sharded(sharding, gib * GIB, bytes_of_gpu, workers) is expected


@pytest.mark.parametrize(
    ("ranks_per_node", "gib", "memory", "expected"),
    [
        ([8] * 16, 100, 80, (2, 8)),
        ([8] * 16, 1000, 80, (1, 16)),  # a node cannot hold a copy
        ([8] * 8, 100, 80, (1, 8)),
        ([1] * 4, 100, 80, (1, 4)),
        ([3, 3, 3, 1], 100, 80, (1, 4)),
        ([2] * 4, 100, None, (2, 2)),
    ],
)
def test_each_node_has_a_copy_where_one_fits(
    ranks_per_node: list[int], gib: int, memory: int | None, expected: tuple[int, int]
):
    bytes_of_gpu = None if memory is None else memory * GIB
    assert mesh_shape(gib * GIB, bytes_of_gpu, ranks_per_node) == expected
