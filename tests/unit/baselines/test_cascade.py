"""The trained model and a language model together: what it would score and cost, and doing it."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from baseline_runs import write_run
from chat_server import ChatServer, Reply, Request, serving
from pyarrow import csv, parquet
from typer.testing import CliRunner

from trainjob import Predictor
from trainjob.api import Baselines
from trainjob.baselines.cascade import curve
from trainjob.baselines.cheap import HeldOutPredictions
from trainjob.baselines.compare import compare_with_baselines
from trainjob.cli.app import app
from trainjob.data import Fitted
from trainjob.errors import UserError
from trainjob.evaluation.paired import estimate_scores
from trainjob.models import build, save_model
from trainjob.runs.comparison import Cascade
from trainjob.storage import Folder

ROWS = 200
LIMITS = Baselines.model_validate(
    {"languageModel": {"endpoint": "http://x", "model": "tiny", "inputPrice": 10, "outputPrice": 30}}
)
OF_TWO = ["blue", "green", "grey", "red"]


def predictions(row_indices: np.ndarray) -> tuple[np.ndarray, HeldOutPredictions, HeldOutPredictions]:
    """Labels of the rows, a model that is right where it is sure, and a language model that is mostly right."""
    chance = np.random.default_rng(0)
    labels, sure = chance.integers(0, 3, ROWS), chance.random(ROWS).astype(np.float32)
    own = np.where(chance.random(ROWS) < sure, labels, (labels + 1) % 3)
    other = np.where(chance.random(ROWS) < 0.9, labels, 3)[row_indices]
    tokens = np.tile([30, 10], (len(row_indices), 1))
    return (
        labels[row_indices],
        HeldOutPredictions(own, sure, np.arange(ROWS), []),
        HeldOutPredictions(other, None, row_indices, [], tokens),
    )


@pytest.mark.parametrize("row_indices", [np.arange(ROWS), np.arange(0, ROWS, 2)], ids=["all rows", "half of the rows"])
def test_the_curve_goes_from_one_to_the_other(row_indices: np.ndarray) -> None:
    labels, model, baseline = predictions(row_indices)
    found = curve(LIMITS, labels, model, baseline, 3)
    assert found is not None
    assert found.rows == len(row_indices)
    first, last = found.points[0], found.points[-1]
    assert (first.threshold, first.asked, first.tokens, first.cost) == (0.0, 0, 0, 0.0)
    assert first.f1 == estimate_scores(labels, model.predicted[row_indices], 3).f1
    assert (last.threshold, last.asked, last.tokens) == (1.0, len(row_indices), 40 * len(row_indices))
    assert last.cost == pytest.approx(len(row_indices) * (30 * 10 + 10 * 30) / 1e6)
    assert last.accuracy == estimate_scores(labels, baseline.predicted, 3).accuracy
    assert len(found.points) == 11
    asked = [point.asked for point in found.points]
    assert asked == sorted(asked)
    assert asked == pytest.approx([len(row_indices) * step / 10 for step in range(11)], abs=2)
    for point in found.points[1:-1]:
        assert point.threshold == round(point.threshold, 4), "it can be typed"
        unsure = model.probabilities[row_indices].astype(float) < point.threshold  # pyrefly: ignore[unsupported-operation]
        assert point.asked == int(unsure.sum())
        both = np.where(unsure, baseline.predicted, model.predicted[row_indices])
        assert point.accuracy.value == pytest.approx(np.mean(both == labels))


def test_a_model_that_is_always_sure_is_never_helped() -> None:
    labels, model, baseline = predictions(np.arange(ROWS))
    sure = HeldOutPredictions(model.predicted, np.ones(ROWS, np.float32), model.row_indices, [])
    found = curve(LIMITS, labels, sure, baseline, 3)
    assert found is not None
    assert [(point.threshold, point.asked) for point in found.points] == [(0.0, 0), (1.0, 0)]


def test_without_a_language_model_there_is_no_cascade() -> None:
    labels, model, baseline = predictions(np.arange(ROWS))
    assert curve(None, labels, model, baseline, 3) is None
    assert curve(LIMITS, labels, model, model, 3) is None, "of a baseline that is asked nothing"


def by_words(request: Request, number: int) -> Reply:
    """The first word of the text that tells a class; none where no word does."""
    words = [word.rstrip("0123456789") for word in request["messages"][-1]["content"].split()]
    return Reply(next((word for word in words if word in OF_TWO), "I cannot say"))


def trained(folder: Path, texts: Path, chat: ChatServer, **fields: object) -> Folder:
    """A run with a model that was never trained."""
    model = {"endpoint": chat.address, "model": "tiny", "concurrency": 4, **fields}
    job, run = write_run(folder, "text", texts, baselines={"languageModel": model})
    preprocessor = Fitted.load(run / "fitted").preprocessor
    torch.manual_seed(0)
    module = build(job.spec.model, preprocessor)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(2)  # so that it is more sure of some rows than of others
    save_model(module, preprocessor, Path(run.uri) / "model")
    return run


def test_the_report_shows_both_together(tmp_path: Path, texts: Path) -> None:
    with serving(by_words) as chat:
        job, run = write_run(
            tmp_path, "text", texts, baselines={"languageModel": {"endpoint": chat.address, "model": "tiny"}}
        )
        (found,) = compare_with_baselines(job, run, ["languageModel"]).baselines
        assert isinstance(found.cascade, Cascade)
        assert found.standing is not None
        assert found.cascade.points[-1].f1 == found.standing.f1
        result = CliRunner().invoke(app, ["baseline", run.uri], env={"COLUMNS": "200"})
    assert "Requests for 1,000 rows" in result.stdout
    page = run.read("report.html").decode()
    assert page.count("<h3>Both together</h3>") == 1
    assert page.count("Cascade with the language model") == 2, "a title and a description"
    stored = json.loads(run.read("baselines.json"))["baselines"][0]["cascade"]
    assert stored["rows"] == 151
    predictions = parquet.read_table(Path(run.uri) / "predictions" / "languageModel.parquet")
    assert set(predictions["input_tokens"].to_pylist()) == {30}
    assert set(predictions["output_tokens"].to_pylist()) == {10}


def predict(run: Folder, *arguments: str) -> str:
    result = CliRunner().invoke(app, ["predict", run.uri, *arguments], catch_exceptions=False)
    return result.stdout


def test_unsure_rows_are_asked_about_once(tmp_path: Path, texts: Path) -> None:
    with serving(by_words) as chat:
        run, output = trained(tmp_path, texts, chat), tmp_path / "out.parquet"
        data = str(texts / "test.csv")
        rows = csv.read_csv(data)
        probabilities = Predictor.load(run.uri).predict_proba(rows)
        threshold = float(np.median(probabilities.max(axis=1)))
        said = predict(run, data, "--cascade", str(threshold), "--output", str(output))
        asked = probabilities.max(axis=1).astype(float) < threshold
        assert len(chat.requests) == asked.sum() > 0
        assert f"{asked.sum()} of 151 rows answered by tiny: {asked.sum()} requests now" in said
        found = parquet.read_table(output)
        assert found["answered_by"].to_pylist() == np.where(asked, "languageModel", "model").tolist()
        own = Predictor.load(run.uri).predict(rows)
        meant = [
            by_words({"messages": [{"content": f"{title} {body}"}]}, 0).text
            for title, body in zip(rows["title"].to_pylist(), rows["body"].to_pylist(), strict=True)
        ]
        assert "I cannot say" in np.array(meant)[asked], "an answer of no class leaves the prediction empty"
        expected = [
            (name if name in OF_TWO else None) if is_asked else mine
            for name, is_asked, mine in zip(meant, asked, own, strict=True)
        ]
        assert found["prediction"].to_pylist() == expected
        assert [value is None for value in found["probability"].to_pylist()] == asked.tolist()
        assert f"{expected.count(None)} of its answers name none of the classes" in said
        once = output.read_bytes()
        said = predict(run, data, "--cascade", str(threshold), "--output", str(output))
        assert "0 requests now" in said
        assert (len(chat.requests), output.read_bytes()) == (asked.sum(), once)


@pytest.mark.parametrize(("threshold", "asked"), [("0", 0), ("1", 151)])
def test_the_ends_of_the_scale(tmp_path: Path, texts: Path, threshold: str, asked: int) -> None:
    with serving(by_words) as chat:
        run = trained(tmp_path, texts, chat)
        predict(run, str(texts / "test.csv"), "--cascade", threshold, "--output", str(tmp_path / "out.csv"))
        assert len(chat.requests) == asked


@pytest.mark.parametrize("fields", [{"shots": 2}, {"shots": 1, "examples": "nearest"}, {}])
def test_what_the_baseline_has_asked_is_not_asked_again(tmp_path: Path, texts: Path, fields: dict[str, object]) -> None:
    with serving(by_words) as chat:
        run = trained(tmp_path, texts, chat, **fields)
        CliRunner().invoke(app, ["baseline", run.uri], catch_exceptions=False)
        assert len(chat.requests) == 151
        predict(run, str(texts / "test.csv"), "--cascade", "1", "--output", str(tmp_path / "out.csv"))
        assert len(chat.requests) == 151


def test_what_a_limit_leaves_over_is_the_models(tmp_path: Path, texts: Path) -> None:
    with serving(by_words) as chat:
        run, output = trained(tmp_path, texts, chat, maxRequests=20, concurrency=1), tmp_path / "out.parquet"
        said = predict(run, str(texts / "test.csv"), "--cascade", "1", "--output", str(output))
        assert len(chat.requests) == 20
    assert "131 rows were left to the trained model, as maxRequests was reached" in said
    found = parquet.read_table(output)
    assert found["answered_by"].to_pylist().count("model") == 131
    assert found["probability"].null_count == 20


def test_texts_are_answered_by_either(tmp_path: Path, texts: Path) -> None:
    with serving(by_words) as chat:
        run = trained(tmp_path, texts, chat)
        assert "languageModel: red\n" in predict(run, "--text", "a red3 thing", "--cascade", "1")
        assert "languageModel: no class\n" in predict(run, "--text", "what", "--cascade", "1")
        assert "model: " in predict(run, "--text", "a red3 thing", "--cascade", "0")
        assert len(chat.requests) == 2


@pytest.mark.parametrize("threshold", ["nan", "-0.1", "1.5", "inf"])
def test_a_threshold_is_a_probability(tmp_path: Path, threshold: str) -> None:
    with pytest.raises(UserError, match=r"the threshold must be a probability, from 0 to 1"):
        predict(Folder(str(tmp_path)), "--text", "x", "--cascade", threshold)


def test_a_server_that_refuses_leaves_no_table(tmp_path: Path, texts: Path) -> None:
    with serving(lambda request, number: Reply("no", status=401)) as chat:
        run, output = trained(tmp_path, texts, chat), tmp_path / "out.csv"
        with pytest.raises(UserError, match="refuses tiny"):
            predict(run, str(texts / "test.csv"), "--cascade", "1", "--output", str(output))
    assert not list(tmp_path.glob("*out.csv*"))


@pytest.mark.parametrize(
    ("kind", "message"),
    [("text", "has no language model to ask"), ("image", "only classifies texts; .* is a classifier of images")],
)
def test_where_there_is_no_language_model(
    tmp_path: Path, kind: str, message: str, request: pytest.FixtureRequest
) -> None:
    data: Path = request.getfixturevalue("texts" if kind == "text" else "images")
    job, run = write_run(tmp_path, kind, data)
    preprocessor = Fitted.load(run / "fitted").preprocessor
    save_model(build(job.spec.model, preprocessor), preprocessor, Path(run.uri) / "model")
    with pytest.raises(UserError, match=message):
        predict(run, str(data / "test.csv"), "--cascade", "0.5")
    with pytest.raises(UserError, match="is not a run's folder" if kind == "text" else message):
        predict(run / "model", str(data / "test.csv"), "--cascade", "0.5")
