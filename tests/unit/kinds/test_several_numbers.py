"""Several numbers a row, for tables, texts and images: read, fitted, learned, scored, answered and compared."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image
from pyarrow.csv import read_csv
from scipy.stats import spearmanr
from sklearn.datasets import load_linnerud
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error
from transformers import pipeline

from predictor_runs import finish_scored, make_run
from report_runs import Page
from trainjob.api import TrainJobSpec
from trainjob.baselines import boosting
from trainjob.baselines.compare import compare_with_baselines
from trainjob.baselines.features import tfidf
from trainjob.baselines.rows import sample
from trainjob.cli.predicted_tables import flat
from trainjob.data import Fitted, fit, prepare_examples
from trainjob.data.batches.loaders import collate
from trainjob.data.read.label_lists import LABELS
from trainjob.data.read.numbers import listed_numbers, with_numbers
from trainjob.data.read.rows import RowLocation, Rows, row_number
from trainjob.errors import DataError, RowError, UserError
from trainjob.evaluate import evaluate
from trainjob.evaluation.scores.several_numbers import SeveralNumbersScores, several_number_scores
from trainjob.evaluation.several_number_estimates import SeveralNumbersJudge, named_columns
from trainjob.kinds.targets.several_numbers import SeveralNumbers
from trainjob.models import build, save_model
from trainjob.predictor import Predictor
from trainjob.report.render import render
from trainjob.runs.contents import read_contents
from trainjob.runs.predictions import read_predictions
from trainjob.storage import Folder

TABM = {"members": 4, "hiddenSize": 32, "embeddingSize": 8}
ENCODER = {"layers": 1, "hiddenSize": 16, "heads": 2, "vocabularySize": 200}
NAMES = ["weight", "price"]
WEIGHTS, PRICES = {"big": 9.0, "mid": 5.0, "tiny": 1.0}, {"gold": 4000.0, "iron": 300.0, "wood": 100.0}


def write_rows(file: Path, rows: int, seed: int) -> Path:
    """Words and sizes, and two numbers that follow from them, in units of their own."""
    chance = np.random.default_rng(seed)
    lines: list[dict[str, Any]] = []
    for _ in range(rows):
        size, material, length = chance.choice([*WEIGHTS]), chance.choice([*PRICES]), chance.integers(1, 50)
        weight = WEIGHTS[size] + 0.1 * length + chance.normal(0, 0.1)
        price = PRICES[material] * (1 + 0.01 * length) + chance.normal(0, 20)
        text = f"{size} thing of {material}"
        lines.append({"text": text, "size": size, "of": material, "length": length, "weight": weight, "price": price})
    with open(file, "w", newline="", encoding="utf-8") as out:
        table = csv.DictWriter(out, list(lines[0]))
        table.writeheader()
        table.writerows(lines)
    return file


def table_spec(folder: Path, **dataset: Any) -> dict[str, Any]:
    sets = {name: {"uri": str(folder / f"{name}.csv")} for name in ("train", "test")}
    columns = {"features": ["size", "of", "length"], "labels": NAMES}
    return {"model": {"tableRegressor": {"tabm": TABM}}, "dataset": sets | columns | dataset}


def text_spec(folder: Path, **dataset: Any) -> dict[str, Any]:
    model = {"textRegressor": {"encoder": ENCODER, "maxLength": 16, "dropout": 0.0}}
    sets = {name: {"uri": str(folder / f"{name}.csv")} for name in ("train", "test")}
    return {"model": model, "dataset": sets | {"text": ["text"], "labels": NAMES} | dataset}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("things")
    write_rows(folder / "train.csv", 200, 0)
    write_rows(folder / "test.csv", 60, 1)
    return folder


def trained(folder: Path, spec: dict[str, Any], rate: float) -> Path:
    """A run whose network was trained, in a plain loop."""
    run, parsed = make_run(folder, spec), TrainJobSpec.model_validate(spec)
    fitted = Fitted.load(Folder(str(run)) / "fitted")
    torch.manual_seed(0)
    module = build(parsed.model, fitted.preprocessor)
    objective = fitted.preprocessor.target.objective(parsed, module)
    batch = collate(fitted.preprocessor, prepare_examples(parsed, fitted)["train"])
    optimizer = torch.optim.AdamW(module.parameters(), rate)
    for _ in range(60):
        optimizer.zero_grad()
        objective.losses(module(**batch.inputs), batch).mean().backward()
        optimizer.step()
    save_model(module, fitted.preprocessor, run / "model")
    return run


@pytest.fixture(scope="module")
def table_run(data: Path) -> Path:
    return trained(data / "table-run", table_spec(data), 5e-3)


@pytest.fixture(scope="module")
def text_run(data: Path) -> Path:
    return trained(data / "text-run", text_spec(data), 1e-2)


def target_of(run: Path) -> SeveralNumbers:
    target = Fitted.load(Folder(str(run)) / "fitted").preprocessor.target
    assert isinstance(target, SeveralNumbers)
    return target


def labels_and_predictions(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    chance, scale = np.random.default_rng(rows), 10.0 ** np.arange(columns)
    labels = np.round(chance.normal(0, 1, (rows, columns)), 1) * scale  # many are equal
    return labels, labels + np.round(chance.normal(0, 0.5, labels.shape), 1) * scale


def columns_of(file: Path, names: list[str]) -> np.ndarray:
    with open(file, encoding="utf-8") as rows:
        return np.array([[float(row[name]) for name in names] for row in csv.DictReader(rows)])


@pytest.mark.parametrize(("rows", "columns"), [(9, 3), (400, 1), (3000, 5)])
def test_scores_equal_those_of_scikit_learn(rows: int, columns: int) -> None:
    labels, predicted = labels_and_predictions(rows, columns)
    names, std = [f"column {index}" for index in range(columns)], 2.0 * 10.0 ** np.arange(columns)
    found = several_number_scores(names, std, labels, predicted, np.full(columns, 3.0 * rows))
    assert found.r2.value == pytest.approx(r2_score(labels, predicted, multioutput="uniform_average"), abs=1e-6)
    rmse = root_mean_squared_error(labels, predicted, multioutput="raw_values")
    mae = mean_absolute_error(labels, predicted, multioutput="raw_values")
    assert [each.scores.rmse.value for each in found.columns] == pytest.approx(rmse.tolist(), abs=1e-6)
    assert [each.scores.mae.value for each in found.columns] == pytest.approx(mae.tolist(), abs=1e-6)
    r2 = r2_score(labels, predicted, multioutput="raw_values")
    assert [each.scores.r2 and each.scores.r2.value for each in found.columns] == pytest.approx(r2.tolist(), abs=1e-6)
    ranks = [spearmanr(*both).statistic for both in zip(labels.T, predicted.T, strict=True)]
    assert found.spearman.value == pytest.approx(np.mean(ranks), abs=1e-6)
    assert (found.rmse, found.mae) == (pytest.approx(np.mean(rmse / std)), pytest.approx(np.mean(mae / std)))
    assert found.as_metrics("test")["test_rmse"] == found.rmse
    assert found.loss == pytest.approx(3.0)
    for each in (found.r2, found.spearman, found.columns[0].scores.rmse):
        assert each.low <= each.value <= each.high
    assert SeveralNumbersScores.model_validate_json(found.model_dump_json(by_alias=True)) == found


def test_a_column_whose_labels_are_all_equal_has_no_r2() -> None:
    labels, predicted = labels_and_predictions(50, 3)
    others = several_number_scores(["a", "c"], np.ones(2), labels[:, [0, 2]], predicted[:, [0, 2]], np.ones(2))
    labels[:, 1] = 7.0
    found = several_number_scores(["a", "b", "c"], np.ones(3), labels, predicted, np.ones(3))
    assert (found.r2, found.spearman) == (others.r2, others.spearman)
    assert found.columns[1].scores.r2 is None
    assert "; R² and Spearman leave out b, where all labels are equal" in found.headline()
    assert found.table().lines[1][3:] == ("not defined: all labels are equal",) * 2
    assert "leave out" not in others.headline()


def test_each_column_counts_the_same_whatever_its_unit() -> None:
    labels, predicted = labels_and_predictions(300, 2)
    judge, worse = SeveralNumbersJudge(NAMES), predicted.copy()
    worse[:, 0] = labels[:, 0].mean()  # the column in the smaller unit
    assert judge.lead(labels, predicted, worse).verdict == "better"
    assert judge.lead(labels, worse, predicted).verdict == "worse"
    assert judge.lead(labels, predicted, predicted).verdict == "no clear difference"
    table = judge.table(np.arange(300), predicted, None, None)
    assert judge.values(table["prediction"]).tolist() == predicted.tolist()


def test_every_column_is_read_and_the_wrong_one_is_named(data: Path, tmp_path: Path) -> None:
    lines = (data / "train.csv").read_text().splitlines()
    for row, wrong in ((3, "much,9"), (5, "1.5,"), (8, "nan,cheap"), (9, "inf,4"), (12, "1,2e200")):
        lines[row] = lines[row].rsplit(",", 2)[0] + f",{wrong}"
    (tmp_path / "train.csv").write_text("\n".join(lines))
    (tmp_path / "test.csv").write_bytes((data / "test.csv").read_bytes())
    for spec in (table_spec(tmp_path), text_spec(tmp_path)):
        with pytest.raises(DataError) as caught:
            fit(TrainJobSpec.model_validate(spec))
        found = str(caught.value)
        assert "5 of 200 rows cannot be used" in found, "a row with two wrong cells is one row"
        assert 'row 3: the label (column "weight") is not a number: "much"' in found
        assert 'row 5: the label (column "price") is empty' in found
        assert '2 rows: the label (column "weight") is not a finite number' in found
        assert 'row 12: the label (column "price") is beyond ±1e+100: "2e200"' in found
        spec["dataset"]["onBadRows"] = "drop"
        assert sum(fit(TrainJobSpec.model_validate(spec)).rows.values()) == 195 + 60


def test_wrong_rows_are_named_in_their_order(tmp_path: Path) -> None:
    cells = ["1,2", "3,cheap", "much,4", "5,", "little,dear", "6,7"]
    bad: list[RowError] = []
    table = pa.table(dict(zip(NAMES, zip(*(cell.split(",") for cell in cells), strict=True), strict=True)))
    rows = with_numbers(Rows(table, lambda index: RowLocation(row_number(index))), NAMES, bad.append)
    assert listed_numbers(rows, LABELS).tolist() == [[1.0, 2.0], [6.0, 7.0]]
    assert [str(error).partition(":")[0] for error in bad] == ["row 2", "row 3", "row 4", "row 5"]
    assert [NAMES[0] in str(error) for error in bad] == [False, True, False, True]


@pytest.mark.parametrize("kind", ["table", "text", "image"])
def test_points_that_seem_to_separate_thousands_are_told_of_each_column(tmp_path: Path, kind: str) -> None:
    lines = ["path,text,size,weight,price"]
    for index in range(40):
        Image.new("RGB", (4, 4), (index, 9, 9)).save(tmp_path / f"{index}.png")
        price = f"{index}.250" if index % 4 else f"9{index:02d}"
        lines.append(f"{index}.png,a thing {index},{index % 7},{index}.5,{price}")
    (tmp_path / "train.csv").write_text("\n".join(lines))
    model, columns = {
        "table": ({"tableRegressor": {"tabm": TABM}}, {"features": ["size"]}),
        "text": ({"textRegressor": {"encoder": ENCODER}}, {"text": ["text"]}),
        "image": ({"imageRegressor": {"cnn": {"channels": [4], "hidden": 8}}}, {"image": "path"}),
    }[kind]
    dataset = {"train": {"uri": str(tmp_path / "train.csv")}, "labels": NAMES, **columns}
    fitted = fit(TrainJobSpec.model_validate({"model": model, "dataset": dataset}))
    assert fitted.profile is not None
    [told] = [note for note in fitted.profile.notes if "thousands" in note]
    assert told.startswith('column "price": points seem to separate thousands, as in 1.250, but are read as decimal')


@pytest.mark.parametrize(
    ("dataset", "said"),
    [
        ({"labels": ["weight", "same"]}, 'column "same" has the label 7 in every row, so there is nothing to learn'),
        ({"labels": ["weight", "copy"]}, 'columns "weight" and "copy" have the same label in every row: leave one of'),
        ({"labels": ["weight", "prize"]}, 'has no column "prize"'),
        ({"labels": ["weight", "length"]}, "spec.dataset.features: must not include the label length"),
        ({"columns": {"weight": "number"}}, "spec.dataset.columns: must not include the label weight"),
        ({"labels": [f"n{index}" for index in range(101)]}, "spec.dataset.labels names 101 columns of numbers; at mos"),
    ],
)
def test_labels_that_cannot_be_learned_are_refused(
    dataset: dict[str, Any], said: str, data: Path, tmp_path: Path
) -> None:
    for name in ("train", "test"):
        with open(data / f"{name}.csv", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        more = [{"same": 7, "copy": row["weight"]} | {f"n{index}": index for index in range(101)} for row in rows]
        with open(tmp_path / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, [*rows[0], *more[0]])
            table.writeheader()
            table.writerows(row | other for row, other in zip(rows, more, strict=True))
    with pytest.raises(DataError) as caught:
        fit(TrainJobSpec.model_validate(table_spec(tmp_path, **dataset)))
    assert said in str(caught.value)


def test_a_table_reads_no_label_as_a_feature(data: Path) -> None:
    spec = table_spec(data, columns={"text": "ignore"})
    del spec["dataset"]["features"]
    fitted: Any = fit(TrainJobSpec.model_validate(spec))
    assert fitted.preprocessor.input.columns == ["size", "of", "length"]


def test_each_column_is_standardized_by_itself(table_run: Path, data: Path) -> None:
    target, spec = target_of(table_run), TrainJobSpec.model_validate(table_spec(data))
    fitted = Fitted.load(Folder(str(table_run)) / "fitted")
    examples = prepare_examples(spec, fitted)["train"]
    assert examples.labels is not None
    assert target.names == NAMES
    np.testing.assert_allclose(target.mean, examples.labels.mean(axis=0))
    np.testing.assert_allclose(target.std, examples.labels.std(axis=0))
    assert SeveralNumbers.load(json.loads(json.dumps(target.save()))) == target
    module: Any = build(spec.model, fitted.preprocessor)
    batch = collate(fitted.preprocessor, examples)
    answers = module(**batch.inputs)
    assert answers.shape == (len(examples.labels), 4, 2), "members learn each by itself"
    standardized = torch.from_numpy((examples.labels - target.mean) / target.std).float()
    expected = ((answers - standardized[:, None]) ** 2).mean(dim=(1, 2))
    torch.testing.assert_close(target.objective(spec, module).losses(answers, batch), expected)


def test_one_column_is_learned_as_one_number_is(data: Path) -> None:
    answers: list[Any] = []
    for labels in ({"labels": ["price"]}, {"labels": None, "label": "price"}):
        spec = TrainJobSpec.model_validate(text_spec(data, **labels, validation={"uri": str(data / "test.csv")}))
        fitted = fit(spec)
        torch.manual_seed(0)
        module: Any = build(spec.model, fitted.preprocessor).eval()
        batch = collate(fitted.preprocessor, prepare_examples(spec, fitted)["train"])
        outputs = module(**batch.inputs)
        objective = fitted.preprocessor.target.objective(spec, module)
        answers.append((outputs.tolist(), objective.losses(outputs, batch).tolist()))
    assert answers[0] == answers[1]


def test_a_table_is_answered_in_the_units_of_its_columns(table_run: Path, data: Path) -> None:
    predictor, table = Predictor.load(table_run), read_csv(data / "test.csv")
    predicted = predictor.predict(table)
    assert list(predicted[0]) == NAMES
    numbers = np.array([list(row.values()) for row in predicted])
    labels = columns_of(data / "test.csv", NAMES)
    scores = evaluate(Folder(str(table_run)), str(data / "test.csv"))
    assert isinstance(scores, SeveralNumbersScores)
    assert scores.r2.value == pytest.approx(r2_score(labels, numbers), abs=1e-6)
    assert scores.r2.value > 0.8
    assert [each.name for each in scores.columns] == NAMES
    (data / "one.csv").write_text("".join((data / "test.csv").read_text().splitlines(keepends=True)[:2]))
    with pytest.raises(UserError, match=r"one\.csv: these rows all have the same labels, so R² and rank corr"):
        evaluate(Folder(str(table_run)), str(data / "one.csv"))
    errors = root_mean_squared_error(labels, numbers, multioutput="raw_values")
    assert [each.scores.rmse.value for each in scores.columns] == pytest.approx(errors.tolist(), rel=1e-6)
    written = flat(predictor.answers(table))
    assert written.column_names == ["prediction_weight", "prediction_price"]
    assert written["prediction_price"].to_pylist() == numbers[:, 1].tolist()
    target, outputs = predictor.preprocessor.target, predictor.outputs(table)
    reply = target.replies(outputs, predictor.model)[0]
    assert reply.model_dump() == {"prediction": predicted[0]}
    assert reply.lines("") == [(name, f"{number:.6g}") for name, number in predicted[0].items()]


def test_a_text_model_is_read_by_transformers(text_run: Path, data: Path) -> None:
    config = json.loads((text_run / "model/config.json").read_bytes())
    assert (config["problem_type"], config["id2label"]) == ("regression", {"0": "weight", "1": "price"})
    predictor, target = Predictor.load(text_run), target_of(text_run)
    texts = ["big thing of gold", "tiny thing of wood"]
    predicted = [list(row.values()) for row in predictor.predict(texts)]
    assert predicted[0][1] > predicted[1][1] + 1000
    read: Any = pipeline("text-classification", model=str(text_run / "model"), top_k=None)
    standardized = [{each["label"]: each["score"] for each in row} for row in read(texts)]
    numbers = [[row[name] for name in NAMES] * target.std + target.mean for row in standardized]
    np.testing.assert_allclose(numbers, predicted, rtol=1e-4)
    assert isinstance(evaluate(Folder(str(text_run)), str(data / "test.csv")), SeveralNumbersScores)


def write_stripes(folder: Path, rows: int, seed: int) -> Path:
    """Images with two levels of grey, and a table with both in units of their own."""
    folder.mkdir()
    levels = np.random.default_rng(seed).integers(20, 230, (rows, 2)).tolist()
    with open(folder / "metadata.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["file_name", "top", "bottom"])
        for row, (top, bottom) in enumerate(levels):
            pixels = np.repeat([top, bottom], 32).reshape(8, 8).astype(np.uint8)
            Image.fromarray(pixels).save(folder / f"{row}.png")
            table.writerow([f"{row}.png", top / 1000, bottom * 1000])
    return folder


def test_images_have_several_numbers(tmp_path: Path) -> None:
    train, test = write_stripes(tmp_path / "train", 80, 0), write_stripes(tmp_path / "test", 30, 1)
    spec = {
        "model": {"imageRegressor": {"mlp": {"hidden": [16]}, "dropout": 0.0}},
        "dataset": {"train": {"uri": str(train)}, "labels": ["top", "bottom"]},
    }
    run = trained(tmp_path / "run", spec, 1e-2)
    scores = evaluate(Folder(str(run)), str(test))
    assert isinstance(scores, SeveralNumbersScores)
    assert scores.r2.value > 0.8
    files = [str(test / f"{row}.png") for row in range(3)]
    assert [list(each) for each in Predictor.load(run).predict(files)] == [["top", "bottom"]] * 3


def finished(run: Folder, predicted: np.ndarray, held: Any) -> None:
    """Writes what a run has after its network has made these predictions for the test rows."""
    fitted = Fitted.load(run / "fitted")
    target: Any = fitted.preprocessor.target
    columns = {"prediction": predicted, "label": held.labels, "error": (predicted - held.labels) / target.std}
    named = {name: named_columns(numbers, target.names) for name, numbers in columns.items()}
    scores = several_number_scores(target.names, target.std, held.labels, predicted, np.ones(target.width))
    finish_scored(run, pa.table({"row": held.rows, **named}), scores)


def test_a_table_is_compared_with_the_mean_ridge_regression_and_boosting(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boosting, "SETTINGS", ({},))
    run = Folder(str(make_run(tmp_path / "run", table_spec(data))))
    job, fitted = read_contents(run).job, Fitted.load(run / "fitted")
    train, held = (sample(job.spec, fitted, name) for name in ("train", "test"))
    poor = held.labels + np.random.default_rng(0).normal(0, 2, held.labels.shape) * held.labels.std(axis=0)
    finished(run, poor, held)
    found = compare_with_baselines(job, run, ["mean", "linear", "lightgbm"])
    baselines: list[Any] = found.baselines
    assert [each.error for each in baselines] == ["", "", ""]
    constant = np.tile(train.labels.mean(axis=0), (len(held.labels), 1))
    assert baselines[0].standing.r2.value == pytest.approx(r2_score(held.labels, constant), abs=1e-6)
    assert [each.lead.verdict for each in baselines] == ["worse", "worse", "worse"]
    assert read_contents(run).comparison == found
    assert found.importance is not None
    assert [each.column for each in found.importance.columns] != []
    rows = read_csv(data / "test.csv")
    for number, name in enumerate(["linear", "lightgbm"], start=1):
        kept = Predictor.load(run.uri, variant=name).predict(rows)
        stored = read_predictions(run, name)["prediction"].to_pylist()
        for own, other in zip(kept, stored, strict=True):
            assert own == pytest.approx(other, rel=1e-6)
        scores = evaluate(run, str(data / "test.csv"), name)
        assert isinstance(scores, SeveralNumbersScores)
        assert scores.r2.value == pytest.approx(baselines[number].standing.r2.value, rel=1e-6)
        assert scores.r2.value > 0.8

    page = Page(render(run))
    means = ["Mean R²", "Mean Spearman", "Mean RMSE", "Mean MAE"]
    assert page.tables["overall"][0] == ["Set", "Rows", *means, "Loss"]
    assert [line[0] for line in page.tables["columns-test"]] == ["Column", "weight", "price"]
    assert len(page.tables["residuals-test-2"]) == 6
    assert "Predicted beside true, price, test" in page.text
    assert [line[0] for line in page.tables["baselines"][1:]] == ["model", "mean", "linear", "lightgbm"]
    off = np.sqrt((((poor - held.labels) / target_of(Path(run.uri)).std) ** 2).mean(axis=1))
    assert f"off by {off.max():.4g} standard deviations" in page.text
    assert f"test.csv, row {off.argmax() + 1}" in page.text
    assert "its mean R² is better by" in page.text


def test_texts_are_compared_with_ridge_regression_of_their_words(data: Path, tmp_path: Path) -> None:
    run = Folder(str(make_run(tmp_path / "run", text_spec(data))))
    job, fitted = read_contents(run).job, Fitted.load(run / "fitted")
    train, held = (sample(job.spec, fitted, name) for name in ("train", "test"))
    finished(run, held.labels * 1.001, held)
    baselines: list[Any] = compare_with_baselines(job, run, ["mean", "tfidf"]).baselines
    assert [each.error for each in baselines] == ["", ""]
    words: Any = tfidf(train.values)
    ridge = Ridge().fit(words.of_training, (train.labels - train.labels.mean(axis=0)) / train.labels.std(axis=0))
    expected = ridge.predict(words.transform(held.values)) * train.labels.std(axis=0) + train.labels.mean(axis=0)
    assert baselines[1].standing.r2.value == pytest.approx(r2_score(held.labels, expected), abs=1e-6)
    assert [each.lead.verdict for each in baselines] == ["better", "better"]
    kept = Predictor.load(run.uri, variant="tfidf").predict(read_csv(data / "test.csv"))
    np.testing.assert_allclose([list(each.values()) for each in kept], expected, rtol=1e-5)


def test_outliers_and_ranges_are_told_by_column(tmp_path: Path) -> None:
    found: Any = load_linnerud()
    labels = found.target.copy()
    labels[3, 1] = 9999
    table = np.hstack([found.data, labels])
    header = ",".join([*found.feature_names, *found.target_names])
    np.savetxt(tmp_path / "train.csv", table, delimiter=",", header=header, comments="", fmt="%g")
    dataset = {"train": {"uri": str(tmp_path / "train.csv")}, "labels": found.target_names}
    dataset["validation"] = {"uri": str(tmp_path / "train.csv")}
    fitted = fit(TrainJobSpec.model_validate({"model": {"tableRegressor": {"tabm": TABM}}, "dataset": dataset}))
    profile = fitted.profile
    assert profile is not None
    assert 'column "Waist": 1 training row has a label far from all others' in " ".join(profile.notes)
    assert (profile.label_range or {})["Largest label, Waist"] == 9999
    assert str(fitted.preprocessor.target.in_words()).startswith("labels of the training rows: Weight from 138 to 247")
