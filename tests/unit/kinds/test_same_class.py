"""Vectors of texts from classes: read, split and batched in twos, learned on all ranks, scored, answered, compared."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import csv
from torch.nn import functional

from embedder_runs import (
    assert_same_step,
    embedder_spec,
    predictions_of_test_rows,
    scores_before_and_after,
)
from predictor_runs import finish_scored, make_run
from ranks import run_on
from report_runs import Page
from trainers import Setup, train, without_times
from trainjob.api import TrainJobSpec
from trainjob.baselines.compare import compare_with_baselines
from trainjob.data import fit, prepare_examples
from trainjob.data.batches.batch import Batch
from trainjob.data.batches.groups import in_groups
from trainjob.data.batches.loaders import BucketSampler, Shard
from trainjob.data.first_pass.split import fit_split
from trainjob.errors import DataError, UserError
from trainjob.evaluate import evaluate
from trainjob.evaluation.ranks import RankJudge, ranks_in_classes
from trainjob.evaluation.scores.retrieval import SameClassScores
from trainjob.kinds.targets.same_class import SameClass
from trainjob.kinds.targets.same_class_objective import SameClassTally, contrastive_losses
from trainjob.predictor import Predictor
from trainjob.report.render import render
from trainjob.runs.contents import read_contents
from trainjob.storage import Folder

CLASSES = [f"topic {number}" for number in range(12)]


def write_texts(file: Path, rows: int, seed: int) -> Path:
    """Four words: each one of three that only this class has, in a random order among the words of all classes."""
    chance = np.random.default_rng(seed)
    numbers = chance.permutation(np.arange(rows) % len(CLASSES))
    texts = [
        " ".join(chance.permutation([*(f"own{3 * number + own}" for own in chance.integers(0, 3, 2)), *other]))
        for number, other in zip(numbers, chance.choice([f"any{word}" for word in range(9)], (rows, 2)), strict=True)
    ]
    csv.write_csv(pa.table({"title": texts, "topic": [CLASSES[number] for number in numbers]}), file)
    return file


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classes")
    write_texts(folder / "train.csv", 240, 0)
    write_texts(folder / "test.csv", 60, 1)
    return folder


def spec_of(folder: Path) -> dict[str, Any]:
    return embedder_spec(folder, 16, text=["title"], label="topic")


def labels_of(*rows: tuple[int, int]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def by_hand(vectors: np.ndarray, labels: np.ndarray, scale: float) -> list[float]:
    """The formula of Khosla et al. (2020), equation 2, text by text; equal texts are left out."""
    losses: list[float] = []
    for row, (own, text) in enumerate(labels):
        others = [other for other in range(len(labels)) if labels[other][1] != text]
        right = [other for other in others if labels[other][0] == own]
        total = sum(np.exp(scale * vectors[row] @ vectors[other]) for other in others)
        logs = [np.log(np.exp(scale * vectors[row] @ vectors[other]) / total) for other in right]
        losses.append(-sum(logs) / max(len(right), 1))
    return losses


def test_the_loss_is_the_supervised_contrastive_one() -> None:
    torch.manual_seed(0)
    labels = labels_of((0, 1), (1, 2), (0, 3), (2, 4), (1, 5), (0, 6), (0, 6), (1, 1))
    vectors = functional.normalize(torch.randn(len(labels), 8, dtype=torch.float64), dim=1)
    found = contrastive_losses(vectors, labels, 5.0)
    np.testing.assert_allclose(found, by_hand(vectors.numpy(), labels.numpy(), 5.0), rtol=1e-9)
    assert found[3] == 0, "no other text of its class"
    assert found[:3].min() > 0


def test_texts_without_others_have_no_gradient() -> None:
    vectors = torch.randn(3, 4, requires_grad=True)
    losses = contrastive_losses(vectors, labels_of((0, 1), (0, 1), (1, 1)), 20.0)
    losses.sum().backward()
    assert losses.tolist() == [0, 0, 0]
    assert vectors.grad is not None
    assert vectors.grad.abs().max() == 0


def first_of_each_class(spec: dict[str, Any], rows: int) -> np.ndarray:
    """Indices of so many training rows, class by class."""
    job = TrainJobSpec.model_validate(spec)
    labels = prepare_examples(job, fit(job))["train"].labels
    assert labels is not None
    return np.argsort(labels[:, 0], kind="stable")[:rows]


@pytest.mark.parametrize(("ranks", "rows"), [(2, 23), (3, 2)], ids=["unequal", "a rank without rows"])
def test_several_ranks_take_the_same_step_as_one(ranks: int, rows: int, data: Path) -> None:
    spec = spec_of(data)
    assert_same_step(ranks, spec, first_of_each_class(spec, rows))


def test_rows_of_a_class_follow_each_other_in_twos_and_threes() -> None:
    chance = np.random.default_rng(0)
    classes = chance.permutation(np.repeat(np.arange(40), np.arange(1, 41)))
    order, groups = in_groups(chance.permutation(len(classes)), classes, 2, chance)
    assert sorted(order) == list(range(len(classes)))
    starts = [0, *(np.flatnonzero(np.diff(groups)) + 1), len(order)]
    for start, stop in pairwise(starts):
        rows = order[start:stop]
        assert len(set(classes[rows])) == 1
        assert 2 <= len(rows) <= 3 or np.sum(classes == classes[rows[0]]) == 1


@pytest.mark.parametrize(("batch_size", "divided"), [(4, 0), (32, 0), (15, 0.2)])
def test_batches_have_two_rows_of_a_class(batch_size: int, divided: float) -> None:
    """10,000 classes of two rows of any length. Of odd batches, some groups are divided at their ends."""
    classes = np.random.default_rng(0).permutation(np.repeat(np.arange(10_000), 2))
    lengths = np.random.default_rng(1).integers(3, 200, len(classes))
    shards = [Shard(rank, 3, batch_size, seed=3) for rank in range(3)]
    samplers = [BucketSampler(lengths, shard, classes, 2) for shard in shards]
    shares = zip(*samplers, strict=True)
    batches = [np.concatenate(share) for share in shares]
    assert sorted(np.concatenate(batches)) == list(range(len(classes)))
    alone = sum(int(np.sum(np.unique(classes[batch], return_counts=True)[1] == 1)) for batch in batches)
    assert alone <= divided * len(classes)
    one = BucketSampler(lengths, Shard(0, 1, batch_size, seed=3), classes, 2)
    assert [set(batch) for batch in batches] == [set(batch) for batch in one], "whatever the number of ranks"
    padded = sum(lengths[batch].max() * len(batch) for batch in batches)
    assert padded < 1.6 * lengths.sum(), "batches hold rows of like length"
    one.epoch = 1
    assert [set(batch) for batch in batches] != [set(batch) for batch in one]


@pytest.mark.parametrize(
    "sizes",
    [[2] * 1000, [3] * 500, [1] * 300 + [2] * 50 + [500], [5, 10_000], [4, 4], [1000] + [10] * 90 + [3] * 9],
    ids=["twos", "threes", "many alone", "unequal", "four rows", "mixed"],
)
def test_a_split_leaves_two_rows_of_a_class_on_each_side_where_it_has_some(sizes: list[int]) -> None:
    classes = np.repeat(np.arange(len(sizes)), sizes)
    hashes = np.random.default_rng(0).integers(1, 2**63, len(classes)).astype(np.uint64)
    split = fit_split(hashes, classes, len(sizes), 0.2, seed=0, least=2)
    is_validation = split.is_validation(hashes, classes)
    held, trained = (np.bincount(classes[side], minlength=len(sizes)) for side in (is_validation, ~is_validation))
    assert not np.any(held == 1)
    assert not np.any((trained == 1) & (np.array(sizes) > 1))
    assert np.sum(held > 0) >= 2
    assert abs(is_validation.sum() - 0.2 * sum(size for size in sizes if size > 1)) <= 3


def test_ranks_are_those_of_the_nearest_other_text_of_the_class() -> None:
    classes, texts = np.array([0, 0, 0, 1, 1, 2, 0]), np.array([1, 2, 3, 4, 5, 6, 1])
    found = np.array(
        [
            [9, 2, 1, 3, 0, 0, 9],
            [3, 9, 1, 3, 0, 2, 3],
            [1, 4, 9, 3, 3, 3, 1],
            [5, 5, 5, 9, 1, 1, 5],
            [1, 1, 1, 1, 9, 1, 1],
            [1, 1, 1, 1, 1, 9, 1],
            [9, 2, 1, 3, 0, 0, 9],
        ],
        float,
    )
    ranks = ranks_in_classes(classes, texts, lambda rows, kept: found[rows][:, kept])
    assert ranks.tolist() == [2, 2, 1, 5, 5, 0, 2]
    estimates = RankJudge().estimates(np.empty((7, 2)), ranks)
    assert estimates.mrr.value == pytest.approx((0.5 + 0.5 + 1 + 0.2 + 0.2 + 0.5) / 6), "without the row that is alone"
    assert RankJudge().lead(np.empty((7, 2)), ranks, np.where(ranks == 5, 0, ranks)).mrr.value == 0


def test_scores_do_not_depend_on_batches_and_ranks() -> None:
    torch.manual_seed(0)
    vectors = functional.normalize(torch.randn(41, 8), dim=1)
    labels = labels_of(*((number % 9, 100 + number // 2) for number in range(41)))
    whole, parts = SameClassTally(20.0, 16), [SameClassTally(20.0, 16) for _ in range(2)]
    whole.add(Batch({}, labels), vectors)
    for rank, tally in enumerate(parts):
        for start in range(rank * 5, 41, 10):
            tally.add(Batch({}, labels[start : start + 5]), vectors[start : start + 5])
    states = [(tally._vectors, tally._labels) for tally in parts]  # noqa: SLF001
    parts[0].combine(lambda value: states)
    whole.combine(lambda value: [value])
    assert parts[0].scores() == whole.scores()


def test_a_network_learns_to_put_classes_together(data: Path) -> None:
    before, after = scores_before_and_after(spec_of(data), 30)
    assert after.recall_at_1.value > before.recall_at_1.value + 0.3
    assert after.loss < before.loss


def setup_of(folder: Path, data: Path) -> Setup:
    """Three batches an epoch, with checkpoints inside of epochs."""
    training = {"epochs": 2, "batchSize": 12, "optimizer": {"sgd": {"learningRate": 0.05, "momentum": 0.9}}}
    spec = TrainJobSpec.model_validate(spec_of(data) | {"training": training, "checkpoints": {"everySteps": 2}})
    fitted = fit(spec)
    sets = {name: examples.take(np.arange(30)) for name, examples in prepare_examples(spec, fitted).items()}
    return Setup(folder, spec, fitted.preprocessor, sets)


def test_resumed_training_ends_with_the_same_numbers(data: Path, tmp_path: Path) -> None:
    whole = setup_of(tmp_path / "whole", data)
    expected, again = run_on(2, train, whole), whole.elsewhere(tmp_path / "again")
    run_on(2, train, again, 5)
    for one, other in zip(run_on(2, train, again), expected, strict=True):
        assert one.resumed == "epoch-0001-step-00000004"
        assert all(np.array_equal(one.weights[name], weights) for name, weights in other.weights.items())
    assert without_times(again.records("epoch")) == without_times(whole.records("epoch"))


def test_an_epoch_of_three_then_two_ranks_is_that_of_one(data: Path, tmp_path: Path) -> None:
    setup = setup_of(tmp_path / "run", data)
    [whole] = run_on(1, train, setup.elsewhere(tmp_path / "alone"))
    stopped = run_on(3, train, setup, None, 0.0, (2, 1))
    assert {each.state.step for each in stopped} == {1}
    for trained in run_on(2, train, setup):
        assert trained.resumed == "epoch-0000-step-00000001"
        assert trained.state.step == whole.state.step == 6
        for name, weights in whole.weights.items():
            np.testing.assert_allclose(trained.weights[name], weights, rtol=1e-3, atol=1e-4, err_msg=name)


def message_of(folder: Path, rows: str, data: Path, **dataset: Any) -> str:
    (folder / "train.csv").write_text("title,topic\n" + rows)
    spec = spec_of(folder)
    spec["dataset"]["test"]["uri"] = str(data / "test.csv")
    spec["dataset"] |= dataset
    with pytest.raises(DataError) as caught:
        fit(TrainJobSpec.model_validate(spec))
    return str(caught.value)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a,x\nb,x\nc,x\n", 'every row has the label "x" in column "topic"; an embedder learns to tell the texts'),
        ("a,x\na,x\nc,y\nd,z\n", 'no label in column "topic" has two different texts'),
        ("a,x\nb,\nc,y\n", 'row 2: the label (column "topic") is empty'),
        ("a,x\n ,x\nc,y\n", "row 2: the text (column title) is empty"),
        ("a,x\nb,x\nc,y\nd,y\n", "once rows are set aside for validation, the training rows do not have two different"),
        (
            "a,x\nb,x\nc,x\nd,x\ne,y\n",
            "the validation rows do not have two different texts of one class and a text of another class",
        ),
    ],
    ids=["one class", "all alone", "no label", "no text", "too few to split", "nothing to find"],
)
def test_classes_that_cannot_be_learned_are_refused(rows: str, message: str, data: Path, tmp_path: Path) -> None:
    assert message in message_of(tmp_path, rows, data)


def test_a_set_that_cannot_be_scored_is_refused(data: Path, tmp_path: Path) -> None:
    (tmp_path / "validation.csv").write_text("title,topic\na,x\nb,y\n")
    message = message_of(tmp_path, "a,x\nb,x\nc,y\n", data, validation={"uri": str(tmp_path / "validation.csv")})
    assert "the validation rows do not have two different texts of one class" in message


def test_classes_with_one_text_are_told_and_odd_batches_refused(data: Path, tmp_path: Path) -> None:
    content = (data / "train.csv").read_text()
    (tmp_path / "train.csv").write_text(content + "a b,lonely\nc d,None\ne f,None\n")
    (tmp_path / "test.csv").write_bytes((data / "test.csv").read_bytes())
    spec = TrainJobSpec.model_validate(spec_of(tmp_path))
    target = fit(spec).preprocessor.target
    assert 'a class is called "None" (2 rows)' in target.notes()[0]
    assert '1 of 14 classes has a single text to train on ("lonely" (1 row))' in target.notes()[1]
    assert str(target.in_words()).startswith("14 classes; training rows of each: topic 0 (16), ")
    small = TrainJobSpec.model_validate(spec_of(tmp_path) | {"training": {"batchSize": 2}})
    with pytest.raises(UserError, match=r"spec\.training\.batchSize: .*: at least 4"):
        target.objective(small, torch.nn.Identity())


def test_later_passes_read_the_same_labels_and_those_of_other_classes(data: Path, tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_bytes((data / "train.csv").read_bytes())
    (tmp_path / "test.csv").write_text("title,topic\na b,new\na  b,new\nc,newer\nown1 any2,topic 3\nd,new\n")
    spec = TrainJobSpec.model_validate(spec_of(tmp_path))
    fitted = fit(spec)
    target: Any = fitted.preprocessor.target
    labels = prepare_examples(spec, fitted)["test"].labels
    assert labels is not None
    classes, texts = labels.T
    assert classes[3] == target.names.index("topic 3")
    assert classes[0] == classes[1] == classes[4] < 0
    assert classes[2] < 0
    assert classes[2] != classes[0]
    assert texts[0] == texts[1]
    assert len(set(texts)) == 4
    assert SameClass.load(json.loads(json.dumps(target.save()))) == target


def test_the_model_is_scored_compared_and_reported(data: Path, tmp_path: Path) -> None:
    with (data / "test.csv").open() as file:
        (tmp_path / "test.csv").write_text(file.read() + "any1 any2,new\n")
    (tmp_path / "train.csv").write_bytes((data / "train.csv").read_bytes())
    run = Folder(str(make_run(tmp_path / "run", spec_of(tmp_path))))
    predictor = Predictor.load(run.uri)
    rows = csv.read_csv(tmp_path / "test.csv")
    vectors = np.array(predictor.predict(rows["title"].to_pylist()))
    scores = evaluate(run, str(tmp_path / "test.csv"))
    assert isinstance(scores, SameClassScores)
    assert (scores.rows, scores.alone) == (60, 1)
    assert "; 1 without another text of their class are left out" in scores.headline()
    first = [
        max(
            (other for other in range(61) if rows["title"][other] != rows["title"][row]),
            key=lambda one: vectors[row] @ vectors[one],
        )
        for row in range(60)
    ]
    hits = [rows["topic"][row] == rows["topic"][other] for row, other in enumerate(first)]
    assert scores.recall_at_1.value == pytest.approx(np.mean(hits), abs=0.02)
    decoded, _ = predictions_of_test_rows(run)
    assert decoded["class"].to_pylist() == [*rows["topic"].to_pylist()[:60], None]
    assert np.mean(1 / decoded["prediction"].to_numpy()[:60]) == pytest.approx(scores.mrr.value)
    finish_scored(run, decoded, scores)
    [baseline] = compare_with_baselines(read_contents(run).job, run, ["tfidf"]).baselines
    assert baseline.error == ""
    assert baseline.standing is not None
    assert baseline.standing.main.value > 0.8, "texts of a class share words"
    page = Page(render(run))
    assert page.tables["overall"][0] == ["Set", "Rows", "Texts", "Alone", "MRR", "Recall@1", "Recall@10", "Loss"]
    assert "Which texts are far from their class" in page.text
    assert '--text "…"' in page.text
    (tmp_path / "alone.csv").write_text("title,topic\na,new\nb,newer\n")
    with pytest.raises(UserError, match="these rows do not have two different texts of one class"):
        evaluate(run, str(tmp_path / "alone.csv"))
