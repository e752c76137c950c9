"""A number for each text: read, fitted, learned, scored, answered and compared."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import csv
from scipy.stats import spearmanr
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from predictor_runs import finish_scored, make_run
from report_runs import Page
from trainjob.api import TrainJobSpec
from trainjob.baselines.compare import compare_with_baselines
from trainjob.baselines.features import tfidf
from trainjob.baselines.rows import sample
from trainjob.data import Fitted, fit, prepare_examples
from trainjob.data.batches.loaders import collate
from trainjob.errors import DataError, UserError
from trainjob.evaluate import evaluate
from trainjob.evaluation.number_estimates import NumberJudge
from trainjob.evaluation.scores.numbers import NumberScores, number_scores
from trainjob.formatting import MISSING
from trainjob.kinds.regressor import RegressionLoss
from trainjob.kinds.targets.number import OneNumber
from trainjob.kinds.targets.number_objective import loss_of
from trainjob.models import build
from trainjob.predictor import Predictor
from trainjob.report.render import render
from trainjob.runs.contents import read_contents
from trainjob.runs.predictions import read_predictions
from trainjob.storage import Folder

ENCODER = {"layers": 1, "hiddenSize": 16, "heads": 2, "vocabularySize": 200}
WORTH = {"good": 30.0, "fine": 10.0, "fair": 0.0, "poor": -20.0, "bad": -40.0}


def write_points(file: Path, rows: int, seed: int) -> Path:
    """Texts of words, and the sum of what these are worth around 1000."""
    chance = np.random.default_rng(seed)
    texts = [" ".join(chance.choice(list(WORTH), chance.integers(2, 9))) for _ in range(rows)]
    points = [1000 + sum(WORTH[word] for word in text.split()) + chance.normal(0, 3) for text in texts]
    csv.write_csv(pa.table({"text": texts, "points": points}), file)
    return file


def spec_of(folder: Path, **model: Any) -> dict[str, Any]:
    return {
        "model": {"textRegressor": {"encoder": ENCODER, "maxLength": 16, "dropout": 0.0, **model}},
        "dataset": {
            "train": {"uri": str(folder / "train.csv")},
            "test": {"uri": str(folder / "test.csv")},
            "text": ["text"],
            "label": "points",
        },
    }


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("points")
    write_points(folder / "train.csv", 200, 0)
    write_points(folder / "test.csv", 60, 1)
    return folder


@pytest.fixture(scope="module")
def run(data: Path) -> Path:
    return make_run(data / "run", spec_of(data))


@pytest.mark.parametrize("rows", [7, 300, 5000], ids=["few", "some", "in groups"])
def test_scores_equal_those_of_scikit_learn(rows: int) -> None:
    chance = np.random.default_rng(rows)
    labels = np.sort(chance.integers(0, 50, rows) * 0.1 + 1e4)  # many are equal
    predicted = labels + np.round(chance.normal(0, 2, rows), 1)
    found = number_scores(labels, predicted, loss_sum=float(rows))
    assert found.r2 is not None
    assert found.spearman is not None
    assert found.rmse.value == pytest.approx(root_mean_squared_error(labels, predicted), abs=1e-6)
    assert found.mae.value == pytest.approx(mean_absolute_error(labels, predicted), abs=1e-6)
    assert found.r2.value == pytest.approx(r2_score(labels, predicted), abs=1e-6)
    assert found.spearman.value == pytest.approx(spearmanr(labels, predicted).statistic, abs=1e-6)
    assert found.as_metrics("test")["test_loss"] == 1.0
    for each in (found.rmse, found.mae, found.r2, found.spearman):
        assert each.low <= each.value <= each.high
    assert sum(each.rows for each in found.residuals) == rows
    assert NumberScores.model_validate_json(found.model_dump_json(by_alias=True)) == found


def test_intervals_hold_the_score_of_all_rows_as_often_as_they_say() -> None:
    chance, judge = np.random.default_rng(0), NumberJudge()
    labels = chance.normal(0, 10, 20_000)
    predicted = labels + chance.normal(0, 3, len(labels))
    whole, hits = judge.estimates(labels, predicted), 0
    for _ in range(60):
        rows = chance.choice(len(labels), 400, replace=False)
        hits += (part := judge.estimates(labels[rows], predicted[rows])).rmse.low <= whole.rmse.value <= part.rmse.high
    assert hits >= 52


def test_predictions_or_labels_that_are_all_equal() -> None:
    labels, equal = np.array([1.0, 2.0, 3.0]), np.full(3, 0.1 + 0.2)
    of_equal_predictions = NumberJudge().estimates(labels, equal)
    assert of_equal_predictions.spearman is not None
    assert of_equal_predictions.spearman.value == 0
    for predicted in (equal, labels, np.full(3, 7.0)):
        found = number_scores(equal, predicted, 1.0)
        assert (found.r2, found.spearman) == (None, None)
        assert found.rmse.value == pytest.approx(root_mean_squared_error(equal, predicted))
        assert set(found.as_metrics("test")) == {"test_loss", "test_rmse", "test_mae"}
        assert [each.name for each in found.measures()] == ["RMSE", "MAE"]
        assert "R² not defined: all labels are equal" in found.headline()
        assert f"R² {MISSING}   Spearman {MISSING}" in found.in_brief()
        assert NumberScores.model_validate_json(found.model_dump_json(by_alias=True)) == found


def test_samples_of_equal_labels_do_not_count() -> None:
    """A third of the bootstrap samples have one of the labels alone."""
    found = NumberJudge().estimates(np.array([1.0, 1.0, 5.0]), np.array([1.0, 2.0, 6.0]))
    assert found.spearman is not None
    assert found.spearman.low > 0


def test_equal_validation_labels_choose_no_checkpoint_by_r2(data: Path, tmp_path: Path) -> None:
    spec = spec_of(data)
    (tmp_path / "equal.csv").write_text("\n".join((data / "test.csv").read_text().splitlines()[:2]))
    spec["dataset"]["validation"] = {"uri": str(tmp_path / "equal.csv")}
    fit(TrainJobSpec.model_validate(spec))
    by_r2 = TrainJobSpec.model_validate(spec | {"checkpoints": {"metric": "validation_r2"}})
    with pytest.raises(DataError, match="so checkpoints cannot be chosen by validation_r2: add rows"):
        fit(by_r2)


def test_the_better_of_two_is_told() -> None:
    chance, judge = np.random.default_rng(0), NumberJudge()
    labels = chance.normal(0, 10, 300)
    good, poor = labels + chance.normal(0, 1, 300), labels + chance.normal(0, 5, 300)
    assert judge.lead(labels, good, poor).verdict == "better"
    assert judge.lead(labels, poor, good).verdict == "worse"
    assert judge.lead(labels, good, good).verdict == "no clear difference"


@pytest.mark.parametrize(
    ("loss", "expected"),
    [({"squaredError": {}}, [0.25, 9]), ({"absoluteError": {}}, [0.5, 3]), ({"huber": {"delta": 2}}, [0.125, 4])],
)
def test_losses(loss: dict[str, Any], expected: list[float]) -> None:
    found = loss_of(RegressionLoss.model_validate(loss))(torch.zeros(2), torch.tensor([0.5, -3]), reduction="none")
    assert found.tolist() == expected


def test_labels_that_are_no_numbers_are_named_with_their_rows(data: Path, tmp_path: Path) -> None:
    lines = [
        "a,1",
        "b,twelve",
        'c,"1,234"',
        "d,",
        "e,nan",
        "f,inf",
        "g,1e3",
        "h, -2.5 ",
        "i,1_000",
        "j,1e999",
        "k,-1e308",
    ]
    (tmp_path / "train.csv").write_text("\n".join(["text,points", *lines]))
    write_points(tmp_path / "test.csv", 9, 2)
    with pytest.raises(DataError) as caught:
        fit(TrainJobSpec.model_validate(spec_of(tmp_path)))
    found = str(caught.value)
    assert "8 of 11 rows cannot be used" in found
    assert '3 rows: the label (column "points") is not a number' in found
    assert 'row 2: "twelve"' in found
    assert 'row 3: "1,234"; write it with a decimal point and without separators of thousands' in found
    assert 'row 4: the label (column "points") is empty' in found
    assert '3 rows: the label (column "points") is not a finite number' in found
    assert 'row 11: the label (column "points") is beyond ±1e+100: "-1e308"' in found
    dropping = spec_of(tmp_path)
    dropping["dataset"] |= {"onBadRows": "drop", "validation": {"uri": str(tmp_path / "test.csv")}}
    assert fit(TrainJobSpec.model_validate(dropping)).rows["train"] == 3


def test_a_constant_label_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("text,points\na,3\nb,3.0\n")
    write_points(tmp_path / "test.csv", 9, 2)
    with pytest.raises(DataError, match='label 3 in column "points"; at least two different ones are needed'):
        fit(TrainJobSpec.model_validate(spec_of(tmp_path)))


def test_the_split_has_labels_of_every_size(data: Path) -> None:
    spec = TrainJobSpec.model_validate(spec_of(data))
    fitted = fit(spec)
    labels = {name: each.labels for name, each in prepare_examples(spec, fitted).items()}
    target = fitted.preprocessor.target
    assert isinstance(target, OneNumber)
    train, validation = labels["train"], labels["validation"]
    assert train is not None
    assert validation is not None
    np.testing.assert_allclose([target.mean, target.std], [train.mean(), train.std()])
    assert len(validation) == pytest.approx(40, abs=5)
    thirds = np.quantile(train, [1 / 3, 2 / 3])
    assert np.bincount(np.searchsorted(thirds, validation)).min() >= 10
    target = OneNumber.load(target.save())
    assert target == fitted.preprocessor.target


def test_copies_of_few_texts_are_set_aside_whatever_their_labels(data: Path, tmp_path: Path) -> None:
    """Each range of labels has one text, which cannot be on both sides."""
    (tmp_path / "train.csv").write_text("text,points\n" + "".join(f"{word},{WORTH[word]}\n" * 20 for word in WORTH))
    values = spec_of(data)
    spec = TrainJobSpec.model_validate(
        values | {"dataset": values["dataset"] | {"train": {"uri": str(tmp_path / "train.csv")}}}
    )
    assert fit(spec).rows == {"train": 80, "validation": 20, "test": 60}


def test_a_network_learns_the_standardized_label(data: Path) -> None:
    spec = TrainJobSpec.model_validate(spec_of(data))
    fitted = fit(spec)
    torch.manual_seed(0)
    module = build(spec.model, fitted.preprocessor)
    objective = fitted.preprocessor.target.objective(spec, module)
    batch = collate(fitted.preprocessor, prepare_examples(spec, fitted)["train"])
    optimizer = torch.optim.AdamW(module.parameters(), 1e-2)
    losses: list[float] = []
    for _ in range(40):
        loss = objective.losses(module(**batch.inputs), batch).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[0] < 4, "labels are standardized"
    assert losses[-1] < 0.3


def test_answers_and_scores_are_in_the_unit_of_the_labels(run: Path, data: Path) -> None:
    predictor, rows = Predictor.load(run), csv.read_csv(data / "test.csv")
    predicted = np.array(predictor.predict(rows))
    assert abs(predicted.mean() - 1000) < 300
    assert predictor.answers(rows)["prediction"].to_pylist() == predicted.tolist()
    scores = evaluate(Folder(str(run)), str(data / "test.csv"))
    assert isinstance(scores, NumberScores)
    labels = rows["points"].to_numpy()
    assert scores.r2 is not None
    assert scores.rmse.value == pytest.approx(root_mean_squared_error(labels, predicted), rel=1e-6)
    assert scores.r2.value == pytest.approx(r2_score(labels, predicted), rel=1e-5)
    (data / "one.csv").write_text("".join((data / "test.csv").read_text().splitlines(keepends=True)[:2]))
    one = evaluate(Folder(str(run)), str(data / "one.csv"))
    assert "R² not defined: all labels are equal" in one.headline()
    assert predictor.classes == []
    with pytest.raises(UserError, match="a regressor of texts predicts no classes"):
        predictor.predict_proba(rows)


def test_the_model_is_compared_with_the_mean_and_with_ridge_regression(data: Path, tmp_path: Path) -> None:
    run = Folder(str(make_run(tmp_path / "run", spec_of(data))))
    job = read_contents(run).job
    fitted = Fitted.load(run / "fitted")
    train, held = sample(job.spec, fitted, "train"), sample(job.spec, fitted, "test")
    predicted = held.labels + np.random.default_rng(0).normal(0, 1, len(held.labels))
    order = np.argsort(held.labels)
    scores = number_scores(held.labels[order], predicted[order], 1.0)
    finish_scored(run, pa.table({"row": held.rows, "prediction": predicted, "label": held.labels}), scores)
    found = compare_with_baselines(job, run, ["mean", "tfidf"])
    baselines: list[Any] = found.baselines
    mean, words = baselines
    assert (mean.error, words.error) == ("", "")
    words_of = tfidf(train.values)
    ridge = Ridge().fit(words_of.of_training, train.labels).predict(words_of.transform(held.values))
    assert words.standing.rmse.value == pytest.approx(root_mean_squared_error(held.labels, ridge), rel=1e-4)
    kept = Predictor.load(run.uri, variant="tfidf").predict(csv.read_csv(data / "test.csv"))
    np.testing.assert_allclose(kept, read_predictions(run, "tfidf")["prediction"].to_numpy(), rtol=1e-9)
    of_variant: Any = evaluate(run, str(data / "test.csv"), "tfidf")
    assert of_variant.rmse.value == pytest.approx(words.standing.rmse.value)
    constant = np.full(len(held.labels), train.labels.mean())
    assert mean.standing.rmse.value == pytest.approx(root_mean_squared_error(held.labels, constant))
    assert (mean.lead.verdict, words.lead.verdict) == ("better", "better")
    assert read_contents(run).comparison == found

    page = Page(render(run))
    assert page.tables["overall"][0] == ["Set", "Rows", "RMSE", "MAE", "R²", "Spearman", "Loss"]
    assert [line[0] for line in page.tables["baselines"][1:]] == ["model", "mean", "tfidf"]
    assert len(page.tables["residuals-test"]) == 6
    assert "RMSE and MAE are in the unit of points." in page.text
    assert "predicted points" in page.text
    assert "mistakes" in page.headings
    assert "reliability" not in page.headings
    assert "Which rows are off most" in page.text
    worst = np.argmax(np.abs(predicted - held.labels))
    assert f"test.csv, row {worst + 1}" in page.text
