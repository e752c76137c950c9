"""Sets are scored row by row, however they divide into batches and ranks."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

from ranks import run_on
from trainers import CLASSES, CNN, TEXT, Setup, build_trainer, image_setup, text_setup
from trainjob.data.batches.loaders import collate, memory_windows, scoring_batches
from trainjob.evaluation import ClassificationScores, Confusion
from trainjob.evaluation.predictions import with_names
from trainjob.kinds.targets.class_losses import sample_losses
from trainjob.kinds.targets.classification import ClassTally
from trainjob.models import build
from trainjob.worker.distributed import rank, world_size
from trainjob.worker.scoring import JOINED_BATCHES, Predicted, Scorer


def expected(setup: Setup, name: str) -> ClassificationScores:
    """Scores of the untrained model on all rows at once."""
    torch.manual_seed(setup.spec.training.seed)
    module = build(setup.spec.model, setup.preprocessor).eval()
    batch = collate(setup.preprocessor, setup.examples[name])
    with torch.inference_mode():
        logits = module(**batch.inputs)
    confusion = np.zeros((3, 3), np.int64)
    np.add.at(confusion, (batch.labels.numpy(), logits.argmax(dim=1).numpy()), 1)
    losses = sample_losses(setup.spec.model, setup.preprocessor.target)(logits, batch.labels)
    from trainjob.evaluation import classification_scores

    return classification_scores(Confusion.of_matrix(confusion), losses.sum().item(), setup.preprocessor.target.classes)


def score(setup: Setup, training: bool) -> tuple[ClassificationScores, bool, bool]:
    """Scores; whether the module is in training mode afterwards; whether gradients were computed."""
    trainer = build_trainer(setup)
    trainer.module.train(training)
    graph: list[bool] = []
    trainer.module.register_forward_hook(lambda *arguments: graph.append(arguments[2].requires_grad))  # pyrefly: ignore[missing-attribute]
    found = trainer.scorer.score(trainer.module, "validation")
    assert isinstance(found, ClassificationScores)
    return found, trainer.module.training, any(graph)


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("batch_size", [6, 24])
def test_every_row_counts_once(tmp_path: Path, ranks: int, batch_size: int):
    """23 rows in batches of 6 over all ranks; or of 24, where the last ranks have none."""
    setup = image_setup(tmp_path, training={"batchSize": batch_size})
    results = [*run_on(1, score, setup, True), *run_on(ranks, score, setup, True)]
    right = expected(setup, "validation")
    for scored, _, _ in results:
        assert scored.rows == 23
        assert scored.confusion == right.confusion
        assert scored.loss == pytest.approx(right.loss, rel=1e-5)
        assert scored.model_copy(update={"loss": right.loss}) == right


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("kind", ["image", "text"])
def test_the_model_is_scored_in_evaluation_mode_and_left_as_it_was(tmp_path: Path, kind: str, training: bool):
    """In training mode, dropout or batch statistics would change the loss."""
    setup = image_setup(tmp_path, model=CNN) if kind == "image" else text_setup(tmp_path, model=TEXT)
    [(scored, mode, graph)] = run_on(1, score, setup, training)
    assert scored.loss == pytest.approx(expected(setup, "validation").loss, rel=1e-5)
    assert mode is training
    assert graph is False


def test_scoring_is_in_the_precision_of_training(tmp_path: Path):
    setup = image_setup(tmp_path, training={"precision": "bf16"})
    [(scored, _, _)] = run_on(1, score, setup, True)
    right = expected(setup, "validation").loss
    assert scored.loss != right
    assert scored.loss == pytest.approx(right, rel=0.02)


def predict(setup: Setup) -> pa.Table | None:
    """The untrained model's predictions for the validation rows."""
    trainer = build_trainer(setup)
    predicted = Predicted()
    trainer.scorer.score(trainer.module, "validation", predicted)
    return predicted.gathered()


@pytest.mark.parametrize("ranks", [1, 3])
def test_what_is_predicted_for_each_row_is_rank_0s_in_the_rows_order(tmp_path: Path, ranks: int):
    setup = image_setup(tmp_path, training={"batchSize": 6})
    table, *others = run_on(ranks, predict, setup)
    torch.manual_seed(setup.spec.training.seed)
    module = build(setup.spec.model, setup.preprocessor).eval()
    batch = collate(setup.preprocessor, setup.examples["validation"])
    with torch.inference_mode():
        shares = module(**batch.inputs).softmax(dim=1)
    assert table is not None
    assert others == [None] * (ranks - 1)
    table = with_names(table, CLASSES)
    assert table["row"].to_pylist() == list(range(23))
    assert table["prediction"].to_pylist() == [CLASSES[index] for index in shares.argmax(dim=1)]
    assert table["label"].to_pylist() == [CLASSES[index] for index in batch.labels]
    np.testing.assert_allclose(table["probability"], shares.max(dim=1).values, rtol=1e-5)


def predict_shares(setup: Setup) -> tuple[ClassificationScores, pa.Table | None]:
    """The untrained model's predictions if each rank has rows of its own, and the first has none."""
    trainer = build_trainer(setup)
    whole, shard = setup.examples["validation"], setup.shard(0, 1)
    number, ranks = rank(), world_size()
    indices = np.flatnonzero(np.arange(len(whole)) % (ranks - 1) == number - 1) if number else np.array([], np.int64)
    share = replace(whole.take(indices), rows=indices * 1000)
    counted: list[tuple[str, int]] = []
    scorer = Scorer(
        lambda _: scoring_batches(memory_windows(share, shard.window), setup.preprocessor, shard),
        trainer.objective,
        torch.device("cpu"),
        torch.float32,
        lambda name, rows: counted.append((name, rows)),
    )
    predicted = Predicted()
    found = scorer.score(trainer.module, "validation", predicted)
    assert isinstance(found, ClassificationScores)
    assert [rows for _, rows in counted] == sorted({rows for _, rows in counted}), "the rows so far, after each batch"
    assert counted[-1:] == ([("validation", len(share))] if len(share) else [])
    return found, predicted.gathered()


def test_shares_of_a_set_give_the_same_as_the_whole(tmp_path: Path):
    setup = image_setup(tmp_path, training={"batchSize": 6})
    [expected_table] = run_on(1, predict, setup)
    shared = run_on(3, predict_shares, setup)
    right = expected(setup, "validation")
    for scored, _ in shared:
        assert scored.rows == 23
        assert scored.confusion == right.confusion
        assert scored.loss == pytest.approx(right.loss, rel=1e-5)
    table = shared[0][1]
    assert table is not None
    assert expected_table is not None
    for name in ("row", "prediction", "label"):
        assert table[name].to_pylist() == expected_table[name].to_pylist()


def test_the_model_computes_in_the_type_it_is_given(tmp_path: Path):
    setup = image_setup(tmp_path)
    module = build(setup.spec.model, setup.preprocessor)
    types: list[torch.dtype] = []
    linear = next(layer for layer in module.modules() if isinstance(layer, torch.nn.Linear))
    linear.register_forward_hook(lambda *arguments: types.append(arguments[2].dtype))  # pyrefly: ignore[missing-attribute]
    batch = collate(setup.preprocessor, setup.examples["validation"])
    objective = setup.preprocessor.target.objective(setup.spec, module)
    Scorer(lambda _: iter([batch]), objective, torch.device("cpu"), torch.float16).score(module, "validation")
    assert types == [torch.float16]


def test_losses_are_added_up_in_double_precision(tmp_path: Path):
    setup, tenth = image_setup(tmp_path), torch.tensor(0.1)
    tally = ClassTally(CLASSES, lambda _, labels: tenth.expand(len(labels)), torch.device("cpu"))
    batch = collate(setup.preprocessor, setup.examples["validation"])
    for _ in range(50):
        tally.add(batch, torch.zeros(len(batch), len(CLASSES)))
    assert tally.scores().loss == pytest.approx(tenth.item(), rel=1e-12)


def test_predictions_of_many_batches_stay_in_order():
    predicted = Predicted()
    rows = np.random.default_rng(0).permutation(3 * JOINED_BATCHES + 5)
    for row in rows:
        predicted.add(pa.table({"row": [int(row)], "label": [f"label {row}"]}))
    table = predicted.gathered()
    assert table is not None
    assert table["label"].to_pylist() == [f"label {row}" for row in range(len(rows))]
