"""Vectors of texts from pairs with scores: read, fitted, learned, scored, answered and compared."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import csv
from scipy.stats import pearsonr, spearmanr

from embedder_runs import embedder_spec, predictions_of_test_rows, scores_before_and_after
from predictor_runs import finish_scored, make_run
from report_runs import Page
from trainjob.api import TrainJobSpec
from trainjob.baselines.compare import compare_with_baselines
from trainjob.data import fit
from trainjob.data.batches.batch import Batch
from trainjob.errors import DataError, UserError
from trainjob.evaluate import evaluate
from trainjob.evaluation.scores.similarity import SimilarityScores
from trainjob.evaluation.similarity import SimilarityJudge
from trainjob.kinds.targets.similarity_objective import cosines
from trainjob.predictor import Predictor
from trainjob.report.render import render
from trainjob.runs.contents import read_contents
from trainjob.storage import Folder

WORDS = [f"word{number}" for number in range(30)]


def write_pairs(file: Path, rows: int, seed: int, prefix: str = "") -> Path:
    """Two texts of words, and how many words both have, from 1 to 5. The words of the second have a prefix."""
    chance = np.random.default_rng(seed)
    first = [chance.choice(WORDS, 4, replace=False).tolist() for _ in range(rows)]
    kept = chance.integers(0, 5, rows).tolist()
    second = [
        [*words[:own], *chance.choice([word for word in WORDS if word not in words], 4 - own, replace=False)]
        for words, own in zip(first, kept, strict=True)
    ]
    texts = {"one": [" ".join(words) for words in first]}
    texts["other"] = [" ".join(f"{prefix}{word}" for word in words) for words in second]
    csv.write_csv(pa.table(texts | {"similarity": [1.0 + own for own in kept]}), file)
    return file


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scored")
    write_pairs(folder / "train.csv", 300, 0)
    write_pairs(folder / "test.csv", 60, 1)
    return folder


def spec_of(folder: Path) -> dict[str, Any]:
    return embedder_spec(folder, 16, text=["one"], textPair=["other"], label="similarity")


def test_the_loss_is_the_squared_difference_of_cosine_and_scaled_score(data: Path) -> None:
    """As in sentence-transformers' CosineSimilarityLoss, whose scores are from 0 to 1."""
    spec = TrainJobSpec.model_validate(spec_of(data))
    target = fit(spec).preprocessor.target
    torch.manual_seed(0)
    vectors = torch.nn.functional.normalize(torch.randn(4, 2, 8), dim=2)
    scores = torch.tensor([1.0, 2.0, 4.5, 5.0], dtype=torch.float64)
    objective = target.objective(spec, torch.nn.Identity())
    found = objective.losses(vectors, Batch({}, scores))
    expected = torch.nn.functional.cosine_similarity(vectors[:, 0], vectors[:, 1]) - torch.tensor([0, 0.25, 0.875, 1])
    torch.testing.assert_close(found, expected**2, rtol=1e-6, atol=1e-6)
    assert "from 1, learned as a cosine of 0, to 5, learned as a cosine of 1" in str(target.in_words())


def test_the_correlations_are_those_of_scipy() -> None:
    chance = np.random.default_rng(0)
    scores = chance.integers(0, 6, 200).astype(np.float64)
    predicted, worse = scores / 5 + chance.normal(0, 0.3, 200), scores / 5 + chance.normal(0, 2, 200)
    found = SimilarityJudge().estimates(scores, predicted)
    assert found.spearman.value == pytest.approx(spearmanr(scores, predicted).statistic, abs=1e-9)
    assert found.pearson.value == pytest.approx(pearsonr(scores, predicted).statistic, abs=1e-9)
    assert found.spearman.low < found.spearman.value < found.spearman.high
    assert SimilarityJudge().lead(scores, predicted, worse).verdict == "better"
    assert SimilarityJudge().lead(scores, predicted, predicted).verdict == "no clear difference"
    with pytest.raises(DataError, match="not defined"):
        SimilarityJudge().lead(np.ones(200), predicted, worse)
    equal = SimilarityJudge().estimates(scores, np.full(200, 0.3))
    assert (equal.spearman.value, equal.pearson.value) == (0, 0)


def test_a_network_learns_the_scores(tmp_path: Path) -> None:
    write_pairs(tmp_path / "train.csv", 300, 0, "non")
    write_pairs(tmp_path / "test.csv", 60, 1, "non")
    before, after = scores_before_and_after(spec_of(tmp_path), 60)
    assert after.spearman.value > before.spearman.value + 0.1
    assert after.loss < before.loss


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a,b,1\nc,d,nan\ne,f,2\n", 'row 2: the label (column "similarity") is not a finite number: "nan"'),
        ("a,b,1\nc,d,close\ne,f,2\n", 'row 2: the label (column "similarity") is not a number: "close"'),
        ("a,b,1\nc,d,\ne,f,2\n", 'row 2: the label (column "similarity") is empty'),
        ("a,b,1\nc,,3\ne,f,2\n", "row 2: the text (column other) is empty"),
        ("a,b,1\nc,d,1\ne,f,1\n", 'every row has the label 1 in column "similarity"; at least two'),
    ],
    ids=["NaN", "no number", "no score", "no text", "constant"],
)
def test_scores_that_cannot_be_used_are_refused(rows: str, message: str, data: Path, tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("one,other,similarity\n" + rows)
    (tmp_path / "test.csv").write_bytes((data / "test.csv").read_bytes())
    with pytest.raises(DataError) as caught:
        fit(TrainJobSpec.model_validate(spec_of(tmp_path)))
    assert message in str(caught.value)


def test_held_out_scores_that_are_all_equal_are_refused(data: Path, tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_bytes((data / "train.csv").read_bytes())
    (tmp_path / "test.csv").write_text("one,other,similarity\na,b,3\nc,d,3\n")
    with pytest.raises(DataError, match=r"the test rows all have the score 3, .*: add rows"):
        fit(TrainJobSpec.model_validate(spec_of(tmp_path)))
    (tmp_path / "test.csv").write_bytes((data / "test.csv").read_bytes())
    (tmp_path / "train.csv").write_text("one,other,similarity\na,b,3\nc,d,4\ne,f,5\n")
    with pytest.raises(DataError, match=r"the validation rows all have .*, or give dataset\.validation\.uri"):
        fit(TrainJobSpec.model_validate(spec_of(tmp_path)))


def test_a_score_far_from_all_others_is_told(data: Path, tmp_path: Path) -> None:
    content = (data / "train.csv").read_text()
    (tmp_path / "train.csv").write_text(content + "a,b,-999\n")
    spec = spec_of(tmp_path)
    spec["dataset"]["validation"] = spec["dataset"].pop("test") | {"uri": str(data / "test.csv")}
    [note] = fit(TrainJobSpec.model_validate(spec)).preprocessor.target.notes()
    assert "1 training row has a score far from all others (they range from -999 to 5)" in note


def test_scores_whose_points_seem_to_separate_thousands_are_told(data: Path, tmp_path: Path) -> None:
    lines = [f"a{index},b{index},{index}.250" if index % 4 else f"a{index},b{index},900" for index in range(1, 40)]
    (tmp_path / "train.csv").write_text("\n".join(["one,other,similarity", *lines]))
    spec = spec_of(tmp_path)
    spec["dataset"].pop("test")
    [note, *_] = fit(TrainJobSpec.model_validate(spec)).preprocessor.target.notes()
    assert note.startswith('column "similarity": points seem to separate thousands, as in 1.250')


def test_the_model_answers_single_texts_and_is_compared_with_tfidf(data: Path) -> None:
    run = Folder(str(make_run(data / "run", spec_of(data))))
    predictor = Predictor.load(run.uri)
    first, second = (
        np.array(predictor.predict(csv.read_csv(data / "test.csv")[name].to_pylist())) for name in ("one", "other")
    )
    scores = evaluate(run, str(data / "test.csv"))
    assert isinstance(scores, SimilarityScores)
    (data / "equal.csv").write_text("one,other,similarity\na,b,3\nc,d,3\n")
    with pytest.raises(UserError, match=r"equal\.csv: these rows all have the score 3, so its correlation"):
        evaluate(run, str(data / "equal.csv"))
    similarity = csv.read_csv(data / "test.csv")["similarity"].to_numpy()
    expected = pearsonr((first * second).sum(axis=1), similarity).statistic
    assert scores.pearson.value == pytest.approx(expected, abs=1e-5)
    predictions, vectors = predictions_of_test_rows(run)
    np.testing.assert_allclose(predictions["prediction"].to_numpy(), cosines(vectors).numpy())
    finish_scored(run, predictions, scores)
    [baseline] = compare_with_baselines(read_contents(run).job, run, ["tfidf"]).baselines
    assert baseline.error == ""
    assert baseline.standing is not None
    assert baseline.standing.main.value > 0.9, "the scores count the words that both texts have"
    page = Page(render(run))
    assert page.tables["overall"][0] == ["Set", "Pairs", "Spearman", "Pearson", "Loss"]
    assert "Which pairs are off most" in page.text
    assert "would be right" in page.text
    assert '--text "…"' in page.text, "a row to embed is one text"
