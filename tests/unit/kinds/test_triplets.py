"""Vectors of texts from triplets: hard negatives are read, learned on all ranks, scored, kept and exported."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import csv
from torch.nn import functional

from embedder_runs import assert_same_step, embedder_spec, predictions_of_test_rows
from predictor_runs import finish_scored, make_run
from report_runs import Page
from trainjob.api import TrainJobSpec
from trainjob.baselines.compare import compare_with_baselines
from trainjob.data import fit
from trainjob.errors import DataError
from trainjob.evaluate import evaluate
from trainjob.evaluation.scores.retrieval import TripletScores
from trainjob.kinds.targets.matching_objective import ranking_losses
from trainjob.predictor import Predictor
from trainjob.report.render import render
from trainjob.runs.contents import read_contents
from trainjob.storage import Folder

WORDS = [f"word{number}" for number in range(40)]
TEXTS = ("anchor", "positive", "negative")


def write_triplets(file: Path, rows: int, seed: int) -> Path:
    """A text, the same words in another order, and a text with half of these words."""
    chance = np.random.default_rng(seed)
    drawn = [chance.choice(WORDS, 8, replace=False) for _ in range(rows)]
    columns = [[words[:4], chance.permutation(words[:4]), words[2:6]] for words in drawn]
    texts = zip(*([" ".join(words) for words in row] for row in columns), strict=True)
    csv.write_csv(pa.table(dict(zip(TEXTS, map(list, texts), strict=True))), file)
    return file


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("triplets")
    write_triplets(folder / "train.csv", 100, 0)
    write_triplets(folder / "test.csv", 30, 1)
    return folder


def spec_of(folder: Path) -> dict[str, Any]:
    return embedder_spec(folder, 8, text=["anchor"], textPair=["positive"], textNegative=["negative"])


def hashes(rows: list[tuple[int, int, int]]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def test_hard_negatives_of_all_rows_join_those_of_the_batch() -> None:
    """As in sentence-transformers' MultipleNegativesRankingLoss: the cross-entropy over all second and third texts."""
    torch.manual_seed(0)
    vectors = functional.normalize(torch.randn(5, 3, 8, dtype=torch.float64), dim=2)
    found = ranking_losses(vectors, hashes([(row, 10 + row, 20 + row) for row in range(5)]), 20.0)
    candidates = torch.cat([vectors[:, 1], vectors[:, 2]])
    expected = functional.cross_entropy(20 * vectors[:, 0] @ candidates.T, torch.arange(5), reduction="none")
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


def test_a_hard_negative_that_belongs_to_another_text_is_left_out_there() -> None:
    torch.manual_seed(0)
    vectors = functional.normalize(torch.randn(3, 3, 8, dtype=torch.float64), dim=2)
    losses = ranking_losses(vectors, hashes([(1, 11, 21), (2, 12, 11), (3, 13, 1)]), 20.0)
    kept = torch.stack([vectors[0, 1], vectors[0, 2], vectors[1, 1], vectors[2, 1]])  # neither its text nor itself
    logits = 20 * kept @ vectors[0, 0]
    torch.testing.assert_close(losses[0], torch.logsumexp(logits, 0) - logits[0])


def test_several_ranks_take_the_same_step_as_one(data: Path) -> None:
    assert_same_step(2, spec_of(data), np.arange(7))


def test_rows_without_a_negative_are_named(data: Path, tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("anchor,positive,negative\na,b,c\nd,e,\nf,g,h\n")
    (tmp_path / "test.csv").write_bytes((data / "test.csv").read_bytes())
    with pytest.raises(DataError, match=r"row 2: the text \(column negative\) is empty"):
        fit(TrainJobSpec.model_validate(spec_of(tmp_path)))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"textNegative": ["anchor"]}, r"must not name a column that is in text \(anchor\)"),
        ({"textNegative": ["positive"]}, r"must not name a column that is in textPair \(positive\)"),
        ({"label": "score"}, "cannot be set together with label"),
    ],
)
def test_negatives_that_do_not_fit_are_refused(fields: dict[str, Any], message: str, data: Path) -> None:
    spec = spec_of(data)
    spec["dataset"] |= fields
    with pytest.raises(ValueError, match=message):
        TrainJobSpec.model_validate(spec)


def test_triplets_are_scored_and_reported(data: Path) -> None:
    run = Folder(str(make_run(data / "run", spec_of(data))))
    predictor = Predictor.load(run.uri)
    rows = csv.read_csv(data / "test.csv")
    first, second, negative = (np.array(predictor.predict(rows[name].to_pylist())) for name in TEXTS)
    assert predictor.predict(rows)[0] == pytest.approx(first[0].tolist(), abs=1e-5), "a row to embed is one text"
    scores = evaluate(run, str(data / "test.csv"))
    assert isinstance(scores, TripletScores)
    closer = (first * second).sum(axis=1) > (first * negative).sum(axis=1)
    assert scores.triplet_accuracy.value == pytest.approx(closer.mean())
    assert 0 < scores.triplet_accuracy.low <= scores.triplet_accuracy.value
    assert scores.as_metrics("validation")["validation_triplet_accuracy"] == scores.triplet_accuracy.value
    predictions, _ = predictions_of_test_rows(run)
    assert predictions["is_closer"].to_pylist() == closer.tolist()
    finish_scored(run, predictions, scores)
    [baseline] = compare_with_baselines(read_contents(run).job, run, ["tfidf"]).baselines
    assert baseline.error == ""
    assert baseline.standing is not None
    assert baseline.standing.main.value > 0.9, "the second text has the words of the first"
    page = Page(render(run))
    assert page.tables["overall"][0] == [
        *("Set", "Triplets", "Texts", "MRR", "Recall@1", "Recall@10", "Triplet accuracy", "Loss")
    ]
    assert "Which pairs are furthest apart" in page.text
