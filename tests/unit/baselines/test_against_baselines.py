"""Baselines of runs that have been trained."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from baseline_runs import write_run
from pyarrow.csv import read_csv
from sklearn.metrics import f1_score
from typer.testing import CliRunner

from trainjob.baselines import rows
from trainjob.baselines.compare import compare_with_baselines
from trainjob.cli.app import app
from trainjob.data import Fitted
from trainjob.driver.baseline_comparison import compare_and_report as compared
from trainjob.errors import DataError, Notice, StorageError, UserError
from trainjob.evaluate import evaluate
from trainjob.models.tfidf import TfidfFeatures
from trainjob.predictor import Predictor
from trainjob.progress.snapshots import Snapshots
from trainjob.runs.contents import read_contents
from trainjob.runs.predictions import read_predictions


def test_the_model_is_compared_with_texts_baselines(tmp_path: Path, texts: Path) -> None:
    job, run = write_run(tmp_path, "text", texts)
    found = compare_with_baselines(job, run, ["mostFrequent", "tfidf"])
    assert (found.set_name, found.rows, found.of_rows) == ("test", 151, 151)
    most, words = found.baselines
    assert (most.error, words.error, most.notes, words.notes) == ("", "", [], [])
    model, guessed = read_predictions(run, "model"), read_predictions(run, "tfidf")
    labels = model["label"].to_pylist()
    assert words.standing is not None
    assert words.standing.f1.value == pytest.approx(
        f1_score(labels, guessed["prediction"].to_pylist(), average="macro")
    )
    assert words.standing.accuracy.value > 0.8  # one word in five tells the class
    assert guessed["row"].to_pylist() == list(range(151))
    constant = read_predictions(run, "mostFrequent")["prediction"].to_pylist()
    assert len(set(constant)) == 1
    assert most.lead is not None
    assert words.lead is not None
    assert (most.lead.verdict, words.lead.verdict) == ("better", "worse")
    assert read_contents(run).comparison == found


def test_the_words_are_kept_as_a_variant_that_answers_as_in_the_report(tmp_path: Path, texts: Path) -> None:
    job, run = write_run(tmp_path, "text", texts)
    baselines: list[Any] = compare_with_baselines(job, run, ["tfidf"]).baselines
    (words,) = baselines
    assert (words.error, words.variant) == ("", True)
    files = run.list("variants/tfidf")
    assert {"config.json", "digests.json", "model.safetensors", "preprocessor.json", "vocabulary.txt"} <= set(files)
    stored, predictor = read_predictions(run, "tfidf"), Predictor.load(run.uri, variant="tfidf")
    answers = predictor.answers(read_csv(texts / "test.csv"))
    assert answers["prediction"].to_pylist() == stored["prediction"].to_pylist()
    np.testing.assert_allclose(answers["probability"].to_numpy(), stored["probability"].to_numpy(), atol=1e-6)
    assert predictor.predict([]) == []
    scores: Any = evaluate(run, str(texts / "test.csv"), "tfidf")
    assert (scores.accuracy, scores.macro.f1) == (words.standing.accuracy.value, words.standing.f1.value)
    result = CliRunner().invoke(app, ["predict", run.uri, "--text", "word", "--variant", "tfidf"])
    assert result.exit_code == 0, result.output


def test_words_that_do_not_fit_their_weights_are_a_damaged_model(tmp_path: Path, texts: Path) -> None:
    job, run = write_run(tmp_path, "text", texts)
    compare_with_baselines(job, run, ["tfidf"])
    vocabulary = tmp_path / "run/variants/tfidf/vocabulary.txt"
    vocabulary.write_text(vocabulary.read_text() + "\nanother")
    with pytest.raises(StorageError, match=r"vocabulary.txt is missing, or is not the saved file"):
        Predictor.load(run.uri, variant="tfidf")
    (tmp_path / "run/variants/tfidf/digests.json").unlink()
    with pytest.raises(UserError, match=r"variants/tfidf: the model is damaged: "):
        Predictor.load(run.uri, variant="tfidf")


def test_of_many_words_a_variant_takes_the_space_of_their_weights(tmp_path: Path, texts: Path) -> None:
    words = [" ".join(f"w{row * 11 + word}" for word in range(11)) for row in range(999)]
    found, classes = TfidfFeatures.fitted(words), 20
    features = found.transform(words[:1]).shape[1]
    assert features > 20_000
    _, run = write_run(tmp_path, "text", texts)
    weights, intercepts = np.ones((features, classes), np.float32), np.zeros(classes, np.float32)
    (tmp_path / "model").mkdir()
    found.save(weights, intercepts, Fitted.load(run / "fitted").preprocessor, tmp_path / "model")
    size = sum(file.stat().st_size for file in (tmp_path / "model").iterdir())
    assert weights.nbytes < size < weights.nbytes + 40 * features


def test_the_validation_part_serves_where_there_is_no_test_set(tmp_path: Path, texts: Path) -> None:
    """The baseline does not train on these rows."""
    job, run = write_run(tmp_path, "text", texts, has_test=False)
    found = compare_with_baselines(job, run, ["mostFrequent"])
    assert (found.set_name, found.rows) == ("validation", 121)


def test_images(tmp_path: Path, images: Path) -> None:
    job, run = write_run(tmp_path, "image", images)
    _, pixels = compare_with_baselines(job, run, ["mostFrequent", "pixels"]).baselines
    assert pixels.standing is not None
    assert pixels.standing.accuracy.value > 0.95


def test_many_rows_are_sampled_and_it_is_said(tmp_path: Path, texts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, run = write_run(tmp_path, "text", texts)
    monkeypatch.setattr(rows, "MAX_ROWS", 100)
    found = compare_with_baselines(job, run, ["tfidf"])
    assert (found.rows, found.of_rows) == (100, 151)
    assert found.baselines[0].notes == ["learned from 100 of the 480 training rows"]
    again = compare_with_baselines(job, run, ["tfidf"])
    assert again.model == found.model
    assert again.baselines[0].standing == found.baselines[0].standing
    kept = read_predictions(run, "tfidf")["row"].to_pylist()
    assert kept == sorted(set(kept))
    model = read_predictions(run, "model")
    right = np.array(model["label"].to_pylist())[kept] == np.array(model["prediction"].to_pylist())[kept]
    assert found.model.accuracy.value == pytest.approx(right.mean())


def test_a_baseline_that_fails_leaves_the_others(tmp_path: Path) -> None:
    """Texts of marks have no words."""
    for name in ("train", "test"):
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["title", "body", "label"])
            writer.writerows([["?" * number, "!", "ab"[number % 2]] for number in range(1, 21)])
    job, run = write_run(tmp_path, "text", tmp_path)
    most, words = compare_with_baselines(job, run, ["mostFrequent", "tfidf"]).baselines
    assert most.standing is not None
    assert "vocabulary" in words.error
    assert (words.standing, words.lead) == (None, None)
    result = CliRunner().invoke(app, ["baseline", run.uri])
    assert result.exit_code == 0
    assert "tfidf could not be computed: empty vocabulary" in " ".join(result.stdout.split())


@pytest.mark.parametrize(("error", "said"), [(MemoryError("no room"), "no room"), (KeyboardInterrupt(), "stopped")])
def test_a_run_succeeds_whatever_becomes_of_the_baselines(
    tmp_path: Path, texts: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, said: str
) -> None:
    job, run = write_run(tmp_path, "text", texts)

    def fail(_: object) -> None:
        raise error

    monkeypatch.setattr(rows, "most_rows", fail)
    with pytest.warns(Notice, match=f"baselines could not be computed: {said}; `trainjob baseline {run.uri}` tries"):
        assert compared(job, run, Snapshots(lambda _: None)) is None


def test_changed_rows_are_refused(tmp_path: Path) -> None:
    for name in ("train", "test"):
        lines = [f"word{number},more,{'ab'[number % 2]}" for number in range(20)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["title,body,label", *lines]))
    job, run = write_run(tmp_path, "text", tmp_path)
    (tmp_path / "test.csv").write_text("\n".join(["title,body,label", *reversed(lines)]))
    with pytest.raises(DataError, match="changed since"):
        compare_with_baselines(job, run, ["mostFrequent"])
    (tmp_path / "test.csv").unlink()
    with pytest.raises((DataError, StorageError), match=r"test\.csv"):
        compare_with_baselines(job, run, ["mostFrequent"])


def test_the_command_shows_the_table_and_writes_the_report(tmp_path: Path, texts: Path) -> None:
    _, run = write_run(tmp_path, "text", texts, baselines={})
    result = CliRunner().invoke(app, ["baseline", run.uri], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    lines = [line for line in result.stdout.splitlines() if "tfidf" in line]
    assert lines[0].rstrip(" │").endswith("worse")
    assert "On 151 test rows" in result.stdout
    assert "Was it worth training?" in run.read("report.html").decode()
    again = CliRunner().invoke(app, ["baseline", run.uri, "--json"])
    assert [each["name"] for each in json.loads(again.stdout)["baselines"]] == ["mostFrequent", "tfidf"]


def test_a_run_that_is_under_way_has_none(tmp_path: Path, texts: Path) -> None:
    _, run = write_run(tmp_path, "text", texts)
    run.delete("summary.json")
    result = CliRunner().invoke(app, ["baseline", run.uri])
    assert str(result.exception).endswith("has not finished; continue it with `trainjob run`")
