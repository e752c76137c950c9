"""Baselines of tables: equal to what scikit-learn and LightGBM compute of the same rows."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pyarrow as pa
import pytest
from baseline_runs import write_run
from pyarrow.csv import read_csv, write_csv
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from trainjob.baselines import boosting
from trainjob.baselines.compare import compare_with_baselines
from trainjob.baselines.rows import sample
from trainjob.data import Fitted
from trainjob.errors import Notice, UserError
from trainjob.evaluate import evaluate
from trainjob.models.precomputed import as_matrix
from trainjob.models.trees import MODEL_TYPE
from trainjob.predictor import Predictor
from trainjob.report.baselines import better_baseline
from trainjob.report.render import write_report
from trainjob.runs.folder import read_job
from trainjob.runs.predictions import read_predictions
from trainjob.storage import Folder

NUMBERS = 5
KINDS_OF_CELLS = ["round", "long", "flat"]


@pytest.fixture(scope="module")
def tumors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """scikit-learn's breast cancer set with five of its columns, and one of categories."""
    found: Any = load_breast_cancer()
    folder = tmp_path_factory.mktemp("tumors")
    values, labels = found["data"][:, :NUMBERS], np.array(["malignant", "benign"])[found["target"]]
    for name, rows in (("train", slice(400)), ("test", slice(400, None))):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*(f"number {index}" for index in range(NUMBERS)), "shape", "label"])
            for row, label in zip(values[rows], labels[rows], strict=True):
                writer.writerow([*row.tolist(), KINDS_OF_CELLS[int(row[0]) % 3], label])
    return folder


def table_of(job: Any, run: Folder, name: str) -> tuple[np.ndarray, list[str], np.ndarray]:
    """Numbers, categories and labels of the rows of a set, of the files themselves, in the run's order."""
    fitted = Fitted.load(run / "fitted")
    sampled: Any = sample(job.spec, fitted, name)
    numbers = np.stack([sampled.values[index].to_numpy() for index in range(NUMBERS)], axis=1)
    codes = sampled.values[NUMBERS].to_numpy()
    names: Any = fitted.preprocessor.input
    return numbers, [names.read[NUMBERS].categories.names[code] for code in codes], sampled.labels


def test_they_are_those_of_scikit_learn_and_lightgbm(
    tmp_path: Path, tumors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boosting, "SETTINGS", ({},))
    job, run = write_run(tmp_path, "table", tumors)
    found = {each.name: each for each in compare_with_baselines(job, run, ["linear", "lightgbm"]).baselines}
    assert [each.error for each in found.values()] == ["", ""]
    (x, kinds, y), (tx, test_kinds, ty), (vx, val_kinds, vy) = (
        table_of(job, run, name) for name in ("train", "test", "validation")
    )
    with (tumors / "test.csv").open() as file:
        assert np.array_equal(tx, [[float(cell) for cell in row[:NUMBERS]] for row in list(csv.reader(file))[1:]])
    with_kinds = [np.column_stack([numbers.astype(object), names]) for numbers, names in ((x, kinds), (tx, test_kinds))]
    transformer: Any = make_column_transformer((StandardScaler(), list(range(NUMBERS))), (OneHotEncoder(), [NUMBERS]))
    linear = LogisticRegression(C=10, solver="saga", max_iter=300, random_state=0, tol=1e-4)
    features = transformer.fit_transform(with_kinds[0]).astype(np.float32)
    with pytest.warns(Warning, match="max_iter"):
        linear.fit(features, y)
    expected = linear.predict(transformer.transform(with_kinds[1]).astype(np.float32))
    check(found["linear"], read_predictions(run, "linear"), ty, expected)
    kept = Predictor.load(run.uri, variant="linear").predict_proba(read_csv(tumors / "test.csv"))
    of_scikit_learn = linear.predict_proba(transformer.transform(with_kinds[1]).astype(np.float32))
    np.testing.assert_allclose(kept, of_scikit_learn, atol=1e-6)

    codes = [np.array([KINDS_OF_CELLS.index(name) for name in names]) for names in (kinds, test_kinds, val_kinds)]
    trees: Any = lightgbm.LGBMClassifier(n_estimators=2000, learning_rate=0.05, random_state=0, verbosity=-1)
    trees.fit(
        np.column_stack([x, codes[0]]),
        y,
        eval_X=np.column_stack([vx, codes[2]]),
        eval_y=vy,
        categorical_feature=[NUMBERS],
        callbacks=[lightgbm.early_stopping(50, verbose=False)],
    )
    check(found["lightgbm"], read_predictions(run, "lightgbm"), ty, trees.predict(np.column_stack([tx, codes[1]])))
    probabilities = trees.predict_proba(np.column_stack([tx, codes[1]])).max(axis=1)
    np.testing.assert_allclose(read_predictions(run, "lightgbm")["probability"].to_numpy(), probabilities, atol=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("load", [load_wine, load_iris])
def test_of_three_classes_they_are_those_of_scikit_learn_and_lightgbm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, load: Callable[..., Any]
) -> None:
    monkeypatch.setattr(boosting, "SETTINGS", ({},))
    found = load()
    names = np.char.add("class ", found.target.astype(str))
    table = pa.table({str(name): column for name, column in zip(found.feature_names, found.data.T, strict=True)})
    rows = np.random.default_rng(0).permutation(len(names))
    for part, chosen in (("test", rows[:40]), ("train", rows[40:])):
        write_csv(table.append_column("label", pa.array(names)).take(chosen), tmp_path / f"{part}.csv")
    job, run = write_run(tmp_path, "table", tmp_path)
    fitted = Fitted.load(run / "fitted")
    train, validation, held = (sample(job.spec, fitted, part) for part in ("train", "validation", "test"))
    x, vx, tx = (as_matrix(each.values) for each in (train, validation, held))
    assert np.array_equal(tx, found.data[rows[:40]])
    scaler = StandardScaler().fit(x)
    linear = LogisticRegression(C=10, solver="saga", max_iter=300, random_state=0)
    linear.fit(scaler.transform(x).astype(np.float32), train.labels)
    trees: Any = lightgbm.LGBMClassifier(n_estimators=2000, learning_rate=0.05, random_state=0, verbosity=-1)
    stopping = [lightgbm.early_stopping(50, verbose=False)]
    trees.fit(x, train.labels, eval_X=vx, eval_y=validation.labels, callbacks=stopping)
    expected = {
        "mostFrequent": DummyClassifier().fit(x, train.labels).predict(tx),
        "linear": linear.predict(scaler.transform(tx).astype(np.float32)),
        "lightgbm": trees.predict(tx),
    }
    baselines: list[Any] = compare_with_baselines(job, run, list(expected)).baselines
    for baseline, predicted in zip(baselines, expected.values(), strict=True):
        assert baseline.standing.accuracy.value == pytest.approx(accuracy_score(held.labels, predicted), abs=1e-6)
        f1 = f1_score(held.labels, predicted, average="macro", zero_division=0)
        assert baseline.standing.f1.value == pytest.approx(f1, abs=1e-6)


def check(baseline: Any, predictions: Any, labels: np.ndarray, expected: np.ndarray) -> None:
    names = np.array(["benign", "malignant"])
    assert predictions["prediction"].to_pylist() == names[expected].tolist()
    assert baseline.standing.accuracy.value == pytest.approx(accuracy_score(labels, expected), abs=1e-6)
    assert baseline.standing.f1.value == pytest.approx(f1_score(labels, expected, average="macro"), abs=1e-6)


def test_the_report_begins_with_a_baseline_that_is_better(tmp_path: Path, tumors: Path) -> None:
    job, run = write_run(tmp_path, "table", tumors)  # with a model that guesses
    found = compare_with_baselines(job, run, ["mostFrequent"])
    assert better_baseline(found) is None
    better = better_baseline(compare_with_baselines(job, run, ["mostFrequent", "lightgbm"]))
    assert better is not None
    assert better.sentence.startswith("Prefer lightgbm to this model: its F1 is better by 0.")
    assert "`trainjob predict RUN DATA --variant lightgbm`" in better.sentence
    write_report(run)
    report = run.read("report.html").decode()
    assert report.index("Prefer lightgbm") < report.index('class="tile')


@pytest.mark.parametrize("classes", [2, 3])
def test_boosted_trees_are_kept_as_a_variant_that_answers_as_in_the_report(
    tmp_path: Path, tumors: Path, monkeypatch: pytest.MonkeyPatch, classes: int
) -> None:
    monkeypatch.setattr(boosting, "SETTINGS", ({},))
    for name in ("train", "test"):
        lines = (tumors / f"{name}.csv").read_text().splitlines()
        if classes == 3:
            lines = [f"{line}{' large' if index % 2 else ''}" for index, line in enumerate(lines)]
            lines[0] = (tumors / f"{name}.csv").read_text().splitlines()[0]
            lines = [line.replace("benign large", "benign") for line in lines]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines))
    _, run = write_run(tmp_path, "table", tmp_path)
    found: list[Any] = compare_with_baselines(read_job(run), run, ["lightgbm"]).baselines
    (baseline,) = found
    assert (baseline.error, baseline.variant) == ("", True)
    stored, predictor = read_predictions(run, "lightgbm"), Predictor.load(run.uri, variant="lightgbm")
    rows = read_csv(tmp_path / "test.csv")
    answers = predictor.answers(rows)
    assert len(predictor.classes) == classes
    assert answers["prediction"].to_pylist() == stored["prediction"].to_pylist()
    np.testing.assert_allclose(answers["probability"].to_numpy(), stored["probability"].to_numpy(), rtol=1e-7)
    trees: Any = lightgbm.Booster(model_file=f"{run.uri}/variants/lightgbm/lightgbm.txt")
    sampled: Any = sample(read_job(run).spec, Fitted.load(run / "fitted"), "test")
    expected = trees.predict(as_matrix(sampled.values)).reshape(len(rows), -1)[:, -1]
    np.testing.assert_allclose(predictor.predict_proba(rows)[:, -1], expected, rtol=1e-9)
    scores: Any = evaluate(run, str(tmp_path / "test.csv"), "lightgbm")
    assert scores.accuracy == pytest.approx(baseline.standing.accuracy.value, abs=1e-12)
    with pytest.raises(UserError, match="has no variant tfidf; it has lightgbm"):
        Predictor.load(run.uri, variant="tfidf")
    (Path(run.uri) / "variants/lightgbm/digests.json").unlink()
    (Path(run.uri) / "variants/lightgbm/config.json").write_text(json.dumps({"model_type": MODEL_TYPE}))
    of_earlier_version = Predictor.load(run.uri, variant="lightgbm")
    np.testing.assert_array_equal(of_earlier_version.predict_proba(rows), predictor.predict_proba(rows))
    (Path(run.uri) / "variants/lightgbm/lightgbm.txt").write_text("tree\n")
    with pytest.raises(UserError, match=r"the model is damaged: lightgbm\.txt"):
        Predictor.load(run.uri, variant="lightgbm")


@pytest.mark.parametrize("classes", [2, 3])
def test_the_linear_model_is_kept_as_a_variant_that_answers_as_in_the_report(
    tmp_path: Path, tumors: Path, classes: int
) -> None:
    """With missing numbers, infinity, and categories that the training rows do not have."""
    for name in ("train", "test"):
        with (tumors / f"{name}.csv").open() as file:
            header, *rows = csv.reader(file)
        for index, row in enumerate(rows):
            row[0] = "" if index % 5 == 0 else row[0]
            row[1] = "inf" if index % 50 == 1 else row[1]
            row[NUMBERS] = "new" if name == "test" and index % 3 == 0 else row[NUMBERS]
            row[-1] += " large" if classes == 3 and row[-1] == "malignant" and index % 2 else ""
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([header, *rows])
    job, run = write_run(tmp_path, "table", tmp_path)
    found: list[Any] = compare_with_baselines(job, run, ["mostFrequent", "linear"]).baselines
    assert [(each.error, each.variant) for each in found] == [("", False), ("", True)]
    stored, predictor = read_predictions(run, "linear"), Predictor.load(run.uri, variant="linear")
    with pytest.warns(Notice, match="category the model has not learned"):
        answers = predictor.answers(read_csv(tmp_path / "test.csv"))
    assert answers["prediction"].to_pylist() == stored["prediction"].to_pylist()
    np.testing.assert_allclose(answers["probability"].to_numpy(), stored["probability"].to_numpy(), atol=1e-6)
    assert len(predictor.classes) == classes
    assert len(set(answers["prediction"].to_pylist())) == classes
    with pytest.warns(Notice, match="category the model has not learned"):
        scores: Any = evaluate(run, str(tmp_path / "test.csv"), "linear")
    assert scores.accuracy == pytest.approx(found[1].standing.accuracy.value, abs=1e-12)
    assert sorted(file.name for file in (Path(run.uri) / "variants/linear").iterdir()) == [
        "config.json", "digests.json", "model.safetensors", "preprocessor.json",
    ]  # fmt: skip
