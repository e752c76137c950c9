"""A number for each row of a table: fitted, trained, saved, answered and compared on scikit-learn's diabetes set."""

import json
import shutil
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import csv
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from predictor_runs import finish_scored, make_run
from preprocessors import input_of
from trainjob.api import TrainJobSpec
from trainjob.baselines import boosting
from trainjob.baselines.cheap import predict_held_out
from trainjob.baselines.compare import compare_with_baselines
from trainjob.baselines.rows import sample
from trainjob.data import Fitted, fit, prepare_examples
from trainjob.data.batches.loaders import collate
from trainjob.errors import DataError
from trainjob.evaluate import evaluate
from trainjob.evaluation.scores.numbers import NumberScores, number_scores
from trainjob.kinds.inputs.table import TableInput
from trainjob.models import build, save_model
from trainjob.models.precomputed import as_matrix
from trainjob.predictor import Predictor
from trainjob.report.render import render
from trainjob.runs.contents import read_contents
from trainjob.runs.predictions import read_predictions
from trainjob.storage import Folder

TABM = {"members": 4, "hiddenSize": 32, "embeddingSize": 8}


def spec_of(folder: Path, **model: Any) -> dict[str, Any]:
    return {
        "model": {"tableRegressor": {"tabm": TABM, **model}},
        "dataset": {
            "train": {"uri": str(folder / "train.csv")},
            "test": {"uri": str(folder / "test.csv")},
            "label": "progression",
        },
    }


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, found = tmp_path_factory.mktemp("diabetes"), load_diabetes(scaled=False)
    diabetes: Any = found
    columns = dict(zip(diabetes.feature_names, diabetes.data.T, strict=True))
    table = pa.table(columns | {"progression": diabetes.target})
    csv.write_csv(table.slice(0, 330), folder / "train.csv")
    csv.write_csv(table.slice(330), folder / "test.csv")
    return folder


@pytest.fixture(scope="module")
def run(data: Path) -> Path:
    """A run whose network was trained, in a plain loop."""
    run, spec = make_run(data / "run", spec_of(data)), TrainJobSpec.model_validate(spec_of(data))
    fitted = Fitted.load(Folder(str(run)) / "fitted")
    torch.manual_seed(0)
    module = build(spec.model, fitted.preprocessor)
    objective = fitted.preprocessor.target.objective(spec, module)
    batch = collate(fitted.preprocessor, prepare_examples(spec, fitted)["train"])
    optimizer = torch.optim.AdamW(module.parameters(), 5e-3)
    for _ in range(60):
        optimizer.zero_grad()
        objective.losses(module(**batch.inputs), batch).mean().backward()
        optimizer.step()
    save_model(module, fitted.preprocessor, run / "model")
    return run


def test_members_learn_each_by_itself_and_answer_with_their_mean(data: Path) -> None:
    spec = TrainJobSpec.model_validate(spec_of(data, dropout=0.0, loss={"absoluteError": {}}))
    fitted = fit(spec)
    module: Any = build(spec.model, fitted.preprocessor)
    target: Any = fitted.preprocessor.target
    batch = collate(fitted.preprocessor, prepare_examples(spec, fitted)["train"])
    answers = module(**batch.inputs)
    assert answers.shape == (len(batch.labels), 4, 1)
    torch.testing.assert_close(module.eval()(**batch.inputs), answers.mean(dim=1))
    standardized = ((batch.labels - target.mean) / target.std).float()
    expected = (answers.squeeze(2) - standardized[:, None]).abs().mean(dim=1)
    torch.testing.assert_close(target.objective(spec, module).losses(answers, batch), expected)


def test_a_trained_network_beats_the_mean_and_scores_as_scikit_learn_does(run: Path, data: Path) -> None:
    predictor, rows = Predictor.load(run), csv.read_csv(data / "test.csv")
    predicted, labels = np.array(predictor.predict(rows)), rows["progression"].to_numpy()
    scores = evaluate(Folder(str(run)), str(data / "test.csv"))
    assert isinstance(scores, NumberScores)
    assert scores.rmse.value == pytest.approx(root_mean_squared_error(labels, predicted), abs=1e-6)
    assert scores.mae.value == pytest.approx(mean_absolute_error(labels, predicted), abs=1e-6)
    assert scores.r2 is not None
    assert scores.r2.value == pytest.approx(r2_score(labels, predicted), abs=1e-6)
    mean = np.full(len(labels), csv.read_csv(data / "train.csv")["progression"].to_numpy().mean())
    assert scores.rmse.value < 0.9 * root_mean_squared_error(labels, mean)


def test_rows_are_predicted_as_mappings_too(run: Path, data: Path) -> None:
    predictor, rows = Predictor.load(run), csv.read_csv(data / "test.csv").slice(0, 5)
    np.testing.assert_allclose(predictor.predict(rows.to_pylist()), predictor.predict(rows))
    table = input_of(predictor.preprocessor, TableInput)
    assert len(predictor.predict(json.loads(json.dumps(table.example()["rows"])))) == 1
    assert predictor.classes == []


def test_a_network_of_an_earlier_version_has_one_number(run: Path, data: Path, tmp_path: Path) -> None:
    shutil.copytree(run / "model", tmp_path / "model")
    config = json.loads((tmp_path / "model/config.json").read_bytes())
    del config["outputs"]
    (tmp_path / "model/config.json").write_text(json.dumps(config))
    rows = csv.read_csv(data / "test.csv")
    assert Predictor.load(tmp_path / "model").predict(rows) == Predictor.load(run).predict(rows)


def test_labels_that_are_no_numbers_are_named_with_their_rows(tmp_path: Path, data: Path) -> None:
    lines = (data / "train.csv").read_text().splitlines()
    for row, wrong in ((3, "much"), (5, ""), (8, "nan")):
        lines[row] = lines[row].rpartition(",")[0] + f",{wrong}"
    (tmp_path / "train.csv").write_text("\n".join(lines))
    (tmp_path / "test.csv").write_bytes((data / "test.csv").read_bytes())
    with pytest.raises(DataError) as caught:
        fit(TrainJobSpec.model_validate(spec_of(tmp_path)))
    assert "3 of 330 rows cannot be used" in str(caught.value)
    assert 'row 3: the label (column "progression") is not a number: "much"' in str(caught.value)
    assert str(caught.value).endswith("\nCorrect these rows, or have them left out with `dataset.onBadRows: drop`.")


@pytest.mark.parametrize(
    ("numbers", "advice"),
    [(0, "otherwise correct these rows."), (40, "otherwise correct these rows, or have them left out with")],
)
def test_labels_that_are_words_lead_to_the_classifier(tmp_path: Path, numbers: int, advice: str) -> None:
    rows = (f"{n / 7},{n if n < numbers else 'ham'}" for n in range(100))
    (tmp_path / "rows.csv").write_text("\n".join(["size,label", *rows]))
    with pytest.raises(DataError, match=f"\nIf the labels are classes, choose model.tableClassifier; {advice}"):
        fit(
            TrainJobSpec.model_validate(
                {
                    "model": {"tableRegressor": {"tabm": {}}},
                    "dataset": {"train": {"uri": str(tmp_path / "rows.csv")}, "label": "label"},
                }
            )
        )


def test_it_is_compared_with_the_mean_ridge_regression_and_boosting(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boosting, "SETTINGS", ({},))
    run = Folder(str(make_run(tmp_path / "run", spec_of(data))))
    job, fitted = read_contents(run).job, Fitted.load(run / "fitted")
    train, validation, held = (sample(job.spec, fitted, name) for name in ("train", "validation", "test"))
    poor = held.labels + np.random.default_rng(0).normal(0, 200, len(held.labels))
    order = np.argsort(held.labels)
    scores = number_scores(held.labels[order], poor[order], 1.0)
    finish_scored(run, pa.table({"row": held.rows, "prediction": poor, "label": held.labels}), scores)
    baselines: list[Any] = compare_with_baselines(job, run, ["mean", "linear", "lightgbm"]).baselines
    assert [each.error for each in baselines] == ["", "", ""]
    x, vx, tx = (as_matrix(each.values) for each in (train, validation, held))
    ridge = make_pipeline(StandardScaler(), Ridge(alpha=1.0))
    ridge.fit(x, (train.labels - train.labels.mean()) / train.labels.std())
    trees: Any = lightgbm.LGBMRegressor(n_estimators=2000, learning_rate=0.05, random_state=0, verbosity=-1)
    stopping = [lightgbm.early_stopping(50, verbose=False)]
    mean, std = train.labels.mean(), train.labels.std()
    trees.fit(x, (train.labels - mean) / std, eval_X=vx, eval_y=(validation.labels - mean) / std, callbacks=stopping)
    constant = np.full(len(held.labels), mean)
    linear, boosted = (model.predict(tx) * std + mean for model in (ridge, trees))
    for baseline, expected in zip(baselines, (constant, linear, boosted), strict=True):
        assert baseline.standing.rmse.value == pytest.approx(root_mean_squared_error(held.labels, expected), abs=1e-6)
    assert baselines[2].lead.verdict == "worse", "the model guesses"
    best = min(baselines, key=lambda each: each.standing.rmse.value)
    assert f"Prefer {best.name} to this model: its RMSE is better by" in render(run)

    kept = Predictor.load(run.uri, variant="linear").predict(csv.read_csv(data / "test.csv"))
    assert kept == pytest.approx(linear.tolist(), abs=1e-6)
    kept = Predictor.load(run.uri, variant="lightgbm").predict(csv.read_csv(data / "test.csv"))
    assert kept == pytest.approx(read_predictions(run, "lightgbm")["prediction"].to_pylist(), rel=1e-12)
    scores = evaluate(run, str(data / "test.csv"), "lightgbm")
    assert isinstance(scores, NumberScores)
    assert scores.rmse.value == pytest.approx(baselines[2].standing.rmse.value, rel=1e-12)

    variant = Path(run.uri) / "variants/lightgbm"
    config = json.loads((variant / "config.json").read_bytes())
    del config["standardized"]  # as earlier versions, whose trees learned labels in their own unit
    (variant / "config.json").write_text(json.dumps(config))
    (variant / "digests.json").unlink()
    trees.fit(x, train.labels)
    trees.booster_.save_model(variant / "lightgbm.txt")
    kept = Predictor.load(run.uri, variant="lightgbm").predict(csv.read_csv(data / "test.csv"))
    assert kept == pytest.approx(trees.predict(tx).tolist(), rel=1e-9)


@pytest.mark.parametrize("labels", [{"label": "day"}, {"labels": ["day", "later"]}], ids=["one", "several"])
def test_baselines_learn_labels_with_a_small_spread_around_a_large_mean(
    data: Path, tmp_path: Path, labels: dict[str, Any]
) -> None:
    """In float32, in which LightGBM keeps labels, they are all equal."""
    rows = csv.read_csv(data / "train.csv")
    days = 2_460_000 + rows["progression"].to_numpy() * 1e-5
    columns = {"day": pa.array(days), "later": pa.array(days + 1)}
    table = pa.table({**dict(zip(rows.column_names, rows.columns, strict=True)), **columns})
    csv.write_csv(table.slice(0, 250), tmp_path / "train.csv")
    csv.write_csv(table.slice(250), tmp_path / "test.csv")
    sets = {part: {"uri": str(tmp_path / f"{part}.csv")} for part in ("train", "test")}
    features = [name for name in rows.column_names if name != "progression"]
    document = {"model": {"tableRegressor": {"tabm": TABM}}, "dataset": {**sets, **labels, "features": features}}
    spec = TrainJobSpec.model_validate(document)
    fitted = fit(spec)
    train, validation, held = (sample(spec, fitted, name) for name in ("train", "validation", "test"))
    for name in ("linear", "lightgbm"):
        found = predict_held_out(name, train, held, fitted.preprocessor.target, lambda: validation)
        assert r2_score(held.labels, found.predicted) > 0.2
