"""The report's section on two classes: curves, and a threshold chosen on the validation rows alone."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, average_precision_score, f1_score, precision_score, recall_score

from report_runs import TEXT_JOB, Page, finish, predict, write_run
from trainjob.evaluation.predictions import prediction_table
from trainjob.report.render import render
from trainjob.runs.predictions import write_predictions
from trainjob.storage import Folder

CLASSES = ["ham", "spam"]


def probabilities(spam: np.ndarray) -> np.ndarray:
    return np.stack([1 - spam, spam], axis=1)


def finished(folder: Path, metric: str = "validation_f1") -> Folder:
    run = write_run(folder, TEXT_JOB + f"  checkpoints: {{metric: {metric}}}\n", [])
    finish(run, CLASSES)
    return run


def drop_test_set(run: Folder) -> None:
    run.write("evaluation.json", json.dumps(json.loads(run.read("evaluation.json")) | {"test": None}).encode())


def too_low(seed: int, rows: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Labels, and probabilities of spam of a model that is not sure enough of it: 0.25 would be a good threshold."""
    random = np.random.default_rng(seed)
    labels = (random.random(rows) < 0.3).astype(np.int64)
    return labels, random.normal(0.15 + 0.2 * labels, 0.07).clip(0.01, 0.99).round(3)


@pytest.mark.parametrize("metric", ["f1", "accuracy"])
def test_the_threshold_is_chosen_by_validation_rows_and_judged_by_test_rows(tmp_path: Path, metric: str) -> None:
    run = finished(tmp_path, f"validation_{metric}")
    labels, spam = too_low(1)
    own, validated = too_low(2)
    predict(run, CLASSES, labels, probabilities(spam))
    predict(run, CLASSES, own, probabilities(validated), "model-validation")
    page = Page(render(run))
    score = {"f1": lambda *rows: f1_score(*rows, average="macro"), "accuracy": accuracy_score}[metric]
    heading, usual, chosen = page.tables["thresholds"]
    threshold = float(chosen[0].removesuffix(" (chosen)"))
    assert score(own, validated >= threshold) == max(score(own, validated >= each) for each in np.unique(validated))
    best_of_test = max(np.unique(spam), key=lambda each: score(labels, spam >= each))
    assert score(labels, spam >= threshold) < score(labels, spam >= best_of_test)  # or the test would show nothing
    name = {"f1": "F1 (macro average)", "accuracy": "Accuracy"}[metric]
    assert heading[:3] == ["Threshold", f"{name}, test", f"{name}, validation"]
    assert heading[3:] == ["Precision of spam, test", "Recall of spam, test"]
    for line, at in ((usual, 0.5), (chosen, threshold)):
        assert line[1] == f"{score(labels, spam >= at):.4f}"
        assert line[2] == f"{score(own, validated >= at):.4f}"
        assert line[3] == f"{precision_score(labels, spam >= at, zero_division=0):.4f}"
        assert line[4] == f"{recall_score(labels, spam >= at):.4f}"
    assert re.search(r"On the test rows, its lead over 0\.5 is \+0\.\S+ \[\+0\.\S+ \+0\.\S+: better\.", page.text)
    assert f"predictor.predict_proba(rows)[:, 1] >= {threshold:g} selects the rows that are spam" in page.text
    assert f"spam as the positive class: average precision {average_precision_score(labels, spam):.4f}" in page.text
    expected = average_precision_score(1 - labels, 1 - spam)
    assert f"ham as the positive class: average precision {expected:.4f}" in page.text


def test_a_lead_that_may_be_luck_is_said_to_be_none(tmp_path: Path) -> None:
    run = finished(tmp_path)
    labels = np.arange(200) % 2
    predict(run, CLASSES, labels, probabilities(0.1 + 0.8 * labels))
    predict(run, CLASSES, np.array([0, 0, 1]), probabilities(np.array([0.1, 0.6, 0.8])), "model-validation")
    page = Page(render(run))
    assert page.tables["thresholds"][2][0] == "0.7 (chosen)"
    said = "its lead over 0.5 is +0.0000 [+0.0000, +0.0000]: no clear difference; 0.5 will do."
    assert said in page.text


def test_the_loss_does_not_depend_on_a_threshold(tmp_path: Path) -> None:
    run = finished(tmp_path, "validation_loss")
    for name in ("model", "model-validation"):
        labels, spam = too_low(1)
        predict(run, CLASSES, labels, probabilities(spam), name)
    page = Page(render(run))
    assert page.tables["thresholds"][0][1] == "F1 (macro average), test"
    assert "validation loss, does not depend on a threshold: F1 (macro average) chooses it instead." in page.text


def test_the_usual_threshold_may_be_the_best(tmp_path: Path) -> None:
    run = finished(tmp_path)
    for name in ("model", "model-validation"):
        predict(run, CLASSES, np.array([0, 1, 1]), probabilities(np.array([0.1, 0.8, 0.9])), name)
    page = Page(render(run))
    assert [line[:3] for line in page.tables["thresholds"][1:]] == [["0.5", "1.0000", "1.0000"]]
    assert "no other threshold has a higher F1 (macro average)" in page.text
    assert "predict_proba(rows)[:, 1]" not in page.text


def test_without_a_test_set_the_judgement_is_said_to_be_in_its_favour(tmp_path: Path) -> None:
    run = finished(tmp_path)
    drop_test_set(run)
    labels, spam = too_low(1)
    predict(run, CLASSES, labels, probabilities(spam))
    page = Page(render(run))
    assert page.tables["thresholds"][0][:2] == ["Threshold", "F1 (macro average), validation"]
    assert "judged on the rows that it was chosen by, which favors it." in page.text


def test_nothing_is_chosen_by_test_rows(tmp_path: Path) -> None:
    """Runs of earlier versions have kept no predictions for validation rows."""
    run = finished(tmp_path)
    labels, spam = too_low(1)
    predict(run, CLASSES, labels, probabilities(spam))
    page = Page(render(run))
    assert "No threshold is chosen: this run has not kept what the model predicts for the validation rows" in page.text
    assert "thresholds" not in page.tables
    assert "spam as the positive class" in page.text


@pytest.mark.parametrize("label", [0, 1])
def test_sets_of_one_class(tmp_path: Path, label: int) -> None:
    run = finished(tmp_path)
    for name in ("model", "model-validation"):
        predict(run, CLASSES, np.full(3, label), probabilities(np.array([0.1, 0.8, 0.9])), name)
    page = Page(render(run))
    assert f"No threshold is chosen: all validation rows are {CLASSES[label]}." in page.text
    assert "as the positive class" not in page.text


def test_other_runs_have_no_threshold(tmp_path: Path) -> None:
    old = finished(tmp_path / "old")
    write_predictions(
        old, "model", prediction_table(np.arange(2), np.array([0, 1]), CLASSES, np.ones(2), np.array([0, 1]))
    )
    assert "threshold" not in Page(render(old)).headings
    three = write_run(tmp_path / "three", TEXT_JOB, [])
    finish(three, ["a", "b", "c"], np.eye(3, dtype=np.int64))
    predict(three, ["a", "b", "c"], np.arange(3), np.eye(3))
    assert "threshold" not in Page(render(three)).headings


def test_curves_of_many_rows_are_drawn_with_few_points(tmp_path: Path) -> None:
    def size(rows: int) -> int:
        run = finished(tmp_path / str(rows))
        random = np.random.default_rng(0)
        labels = random.integers(0, 2, rows)
        for name in ("model", "model-validation"):
            predict(run, CLASSES, labels, probabilities((random.random(rows) + labels) / 2), name)
        return len(render(run))

    assert size(100_000) < size(1000) + 10_000
