"""Vectors of texts: pairs are read, learned with the other pairs of a batch as negatives, scored and exported."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import csv, parquet
from transformers.models.auto.modeling_auto import AutoModel
from transformers.models.auto.tokenization_auto import AutoTokenizer

from embedder_runs import (
    assert_same_step,
    embedder_spec,
    predictions_of_test_rows,
    scores_before_and_after,
)
from predictor_runs import finish_scored, make_run
from report_runs import Page
from trainjob.api import TrainJobSpec
from trainjob.baselines.compare import compare_with_baselines
from trainjob.cli.predicted_rows import classify
from trainjob.data import fit
from trainjob.data.batches.batch import Batch
from trainjob.errors import DataError, UserError
from trainjob.evaluate import evaluate
from trainjob.evaluation.ranks import RankJudge, ranks_of
from trainjob.evaluation.scores.retrieval import RetrievalScores
from trainjob.kinds.targets.matching_objective import MatchingTally, ranking_losses
from trainjob.predictor import Predictor
from trainjob.report.render import render
from trainjob.runs.contents import read_contents
from trainjob.storage import Folder

WORDS = [f"{kind}{number}" for kind in ("red", "blue", "gold", "grey") for number in range(10)]


def write_pairs(file: Path, rows: int, seed: int) -> Path:
    """A text, and one with the same words in another spelling and another order."""
    chance = np.random.default_rng(seed)
    drawn = [chance.choice(WORDS, chance.integers(2, 6), replace=False) for _ in range(rows)]
    answers = [" ".join(f"not {word}" for word in chance.permutation(words)) for words in drawn]
    csv.write_csv(pa.table({"question": [" ".join(words) for words in drawn], "answer": answers}), file)
    return file


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("matching")
    write_pairs(folder / "train.csv", 200, 0)
    write_pairs(folder / "test.csv", 50, 1)
    return folder


def spec_of(folder: Path) -> dict[str, Any]:
    return embedder_spec(folder, 16, text=["question"], textPair=["answer"])


@pytest.fixture(scope="module")
def run(data: Path) -> Path:
    return make_run(data / "run", spec_of(data))


def labels_of(pairs: list[tuple[int, int]]) -> torch.Tensor:
    return torch.tensor([(first << 32) | second for first, second in pairs])


def test_the_loss_is_the_cross_entropy_of_the_scaled_cosines() -> None:
    torch.manual_seed(0)
    first, second = torch.nn.functional.normalize(torch.randn(2, 5, 8), dim=2)
    found = ranking_losses(
        torch.stack([first, second], 1), labels_of([(number, 10 + number) for number in range(5)]), 20.0
    )
    expected = torch.nn.functional.cross_entropy(20 * first @ second.T, torch.arange(5), reduction="none")
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("other", [(1, 12), (2, 11), (3, 1)], ids=["equal first", "equal second", "the text itself"])
def test_a_pair_that_would_be_a_false_negative_is_left_out(other: tuple[int, int]) -> None:
    torch.manual_seed(0)
    first, second = torch.nn.functional.normalize(torch.randn(2, 3, 8), dim=2)
    losses = ranking_losses(torch.stack([first, second], 1), labels_of([(1, 11), other, (9, 19)]), 20.0)
    logits = 20 * first[0] @ second[[0, 2]].T
    torch.testing.assert_close(losses[0], torch.logsumexp(logits, 0) - logits[0])


@pytest.mark.parametrize(("ranks", "rows"), [(2, 8), (2, 7), (3, 2)], ids=["equal", "unequal", "a rank without rows"])
def test_several_ranks_take_the_same_step_as_one(ranks: int, rows: int, data: Path) -> None:
    assert_same_step(ranks, spec_of(data), np.arange(rows))


def test_ranks_count_each_text_once_and_leave_out_what_belongs_to_the_first() -> None:
    labels = labels_of([(1, 11), (1, 12), (2, 13), (3, 11), (4, 1)]).numpy()
    texts = np.unique(labels & 0xFFFFFFFF)
    assert texts.tolist() == [1, 11, 12, 13]
    found = np.array([[9.0, 1, 5, 6], [9, 1, 5, 6], [1, 2, 3, 0], [4, 4, 1, 1], [1, 1, 1, 1]])
    ranks = ranks_of(labels, lambda rows, kept: found[rows].copy())
    assert ranks.tolist() == [2, 2, 4, 2, 4]
    estimates = RankJudge().estimates(ranks, ranks)
    assert estimates.mrr.value == pytest.approx((0.5 + 0.5 + 0.25 + 0.5 + 0.25) / 5)
    assert (estimates.recall_at_1.value, estimates.recall_at_10.value) == (0, 1)


def test_scores_do_not_depend_on_batches_and_ranks() -> None:
    torch.manual_seed(0)
    vectors = torch.nn.functional.normalize(torch.randn(40, 2, 8), dim=2)
    labels = labels_of([(number, 100 + number) for number in range(40)])
    whole, parts = MatchingTally(20.0, 16), [MatchingTally(20.0, 16) for _ in range(2)]
    whole.add(Batch({}, labels), vectors)
    for rank, tally in enumerate(parts):
        for start in range(rank * 5, 40, 10):
            tally.add(Batch({}, labels[start : start + 5]), vectors[start : start + 5])
    states = [(tally._vectors, tally._labels) for tally in parts]  # noqa: SLF001
    parts[0].combine(lambda value: states)
    whole.combine(lambda value: [value])
    assert parts[0].scores() == whole.scores()


def test_a_network_learns_to_put_pairs_together(data: Path) -> None:
    before, after = scores_before_and_after(spec_of(data), 40)
    assert after.mrr.value > before.mrr.value + 0.2
    assert after.loss < before.loss


def test_rows_without_two_texts_are_named(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("question,answer\na,b\n ,c\nd,\ne,f\n")
    write_pairs(tmp_path / "test.csv", 9, 2)
    with pytest.raises(DataError) as caught:
        fit(TrainJobSpec.model_validate(spec_of(tmp_path)))
    assert "row 2: the text (column question) is empty" in str(caught.value)
    assert "row 3: the text (column answer) is empty" in str(caught.value)
    (tmp_path / "train.csv").write_text("question,answer\na,b\nc,b\n")
    with pytest.raises(
        DataError, match="have no text in answer that would be a wrong match for any of them; an embedder"
    ):
        fit(TrainJobSpec.model_validate(spec_of(tmp_path)))
    (tmp_path / "train.csv").write_text("question,reply\na,b\nc,b\n")
    with pytest.raises(DataError, match='no column "answer"'):
        fit(TrainJobSpec.model_validate(spec_of(tmp_path)))


def test_rows_without_texts_are_named_in_their_order(run: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("question,answer\na,b\nc,\n,d\n,\ne,f\ng,\n")
    with pytest.raises(DataError) as caught:
        evaluate(Folder(str(run)), str(tmp_path / "bad.csv"))
    lines = str(caught.value).splitlines()
    assert lines[1].endswith("2 rows: the text (column answer) is empty: " + f"{tmp_path / 'bad.csv'}, row 2; row 6")
    assert lines[2].endswith("2 rows: the text (column question) is empty: " + f"{tmp_path / 'bad.csv'}, row 3; row 4")


def test_a_pair_column_is_required(data: Path) -> None:
    alone = spec_of(data)
    del alone["dataset"]["textPair"]
    with pytest.raises(ValueError, match=r"is required by model\.textEmbedder"):
        TrainJobSpec.model_validate(alone)


def test_the_export_says_how_sentence_transformers_computes_the_same_vectors(run: Path) -> None:
    modules = json.loads((run / "model" / "modules.json").read_text())
    assert [each["type"].rpartition(".")[2] for each in modules] == ["Transformer", "Pooling", "Normalize"]
    for each in modules[1:]:
        assert (run / "model" / each["path"]).is_dir()
    pooling = json.loads((run / "model" / "1_Pooling" / "config.json").read_text())
    assert pooling == {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True}
    assert json.loads((run / "model" / "sentence_bert_config.json").read_text())["max_seq_length"] == 16
    texts = ["red1 blue2", "gold3", "grey1 " * 30, ""]
    tokenizer: Any = AutoTokenizer.from_pretrained(run / "model")
    tokens = tokenizer(texts, padding=True, truncation=True, max_length=16, return_tensors="pt")
    with torch.inference_mode():
        hidden = AutoModel.from_pretrained(run / "model")(**tokens).last_hidden_state
    weights = tokens["attention_mask"].unsqueeze(2)
    expected = torch.nn.functional.normalize((hidden * weights).sum(1) / weights.sum(1), dim=1)
    predictor = Predictor.load(run)
    np.testing.assert_allclose(np.array(predictor.predict(texts)), expected, atol=1e-5)
    assert predictor.predict([{"question": "gold3"}])[0] == pytest.approx(expected[1].tolist(), abs=1e-5)


def test_vectors_are_written_and_shown(run: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, rows = Folder(str(run)), csv.read_csv(data / "test.csv")
    expected = np.array(Predictor.load(run).predict(rows))
    for name in ("vectors.parquet", "vectors.csv"):
        classify(folder, None, None, str(data / "test.csv"), {}, data / name)
    found = parquet.read_table(data / "vectors.parquet")
    assert found["question"].to_pylist() == rows["question"].to_pylist()
    np.testing.assert_allclose(np.array(found["prediction"].to_pylist()), expected, atol=1e-6)
    texts = csv.read_csv(data / "vectors.csv")["prediction"].to_pylist()
    np.testing.assert_allclose(np.array([json.loads(text) for text in texts]), expected, atol=1e-6)
    classify(folder, None, None, None, {"text": ["red1"], "image": [], "row": []}, data / "unused.csv")
    assert "… (32 numbers)" in capsys.readouterr().out


def test_it_is_compared_with_the_cosine_of_tfidf(data: Path) -> None:
    run = Folder(str(make_run(data / "compared", spec_of(data))))
    scores = evaluate(run, str(data / "test.csv"))
    assert isinstance(scores, RetrievalScores)
    assert (scores.rows, scores.texts) == (50, 50)
    for rows in ("a,b\nc,b\n", "a,b\n", "a,b\na,c\n", "a,b\nb,a\n"):
        (data / "alike.csv").write_text(f"question,answer\n{rows}")
        with pytest.raises(
            UserError, match=r"alike\.csv: these rows have no text in answer that would be a wrong match"
        ):
            evaluate(run, str(data / "alike.csv"))
    (data / "apart.csv").write_text("question,answer\na,b\na,c\nd,b\n")
    assert evaluate(run, str(data / "apart.csv")).size() == ("pairs", 3)
    predictions, _ = predictions_of_test_rows(run)
    assert np.mean(1 / predictions["prediction"].to_numpy()) == pytest.approx(scores.mrr.value)
    finish_scored(run, predictions, scores)
    baselines: list[Any] = compare_with_baselines(read_contents(run).job, run, ["tfidf"]).baselines
    assert baselines[0].error == ""
    assert baselines[0].standing.mrr.value > 0.8, "both texts have the same words"
    assert baselines[0].lead.verdict == "worse"
    page = Page(render(run))
    assert page.tables["overall"][0] == ["Set", "Pairs", "Texts", "MRR", "Recall@1", "Recall@10", "Loss"]
    assert "Which pairs are furthest apart" in page.text
    assert "--text" in page.text
