"""A classifier of the rows of a table: types of columns, what is learned of them, training and predictions."""

import csv
import gzip
import json
import random
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
import yaml
from pyarrow import parquet
from pyarrow.csv import read_csv, write_csv
from pyarrow.parquet import write_table
from typer.testing import CliRunner

from predictor_runs import make_run
from preprocessors import input_of
from trainjob import Predictor
from trainjob.api import Model, TrainJobSpec
from trainjob.api.kubernetes_yaml import Loader
from trainjob.cli.app import app
from trainjob.data import Fitted, fit, load_preprocessor, prepare_examples
from trainjob.data.batches.examples import Examples
from trainjob.data.read.rows import Rows, row_number
from trainjob.errors import DataError, Notice, UserError
from trainjob.kinds.inputs.column_types import begins_with_zero_and_digit
from trainjob.kinds.inputs.leaks import ReadLabels, determine_labels
from trainjob.kinds.inputs.table import TableInput, joined_cells, separated_cells
from trainjob.kinds.inputs.table_columns import Categories, TableColumn
from trainjob.models import build, load_model, save_model
from trainjob.models.objective import of_members

COLUMNS = ["id", "age", "income", "city", "member", "since", "empty", "note", "country", "label"]
TABM = {"tabm": {"members": 3, "hiddenSize": 8, "embeddingSize": 4}}


def write_customers(file: Path, rows: int = 200, **changes: dict[int, str]) -> Path:
    """Customers with columns of each type, some of them missing; `changes` are other cells of a column by row."""
    chance = random.Random(0)
    with file.open("w", newline="") as opened:
        writer = csv.DictWriter(opened, COLUMNS)
        writer.writeheader()
        for number in range(rows):
            age = chance.randrange(18, 90)
            row = {
                "id": number,
                "age": "" if number % 10 == 0 else age,
                "income": f"{chance.lognormvariate(10, 1):.2f}",
                "city": chance.choice(["Rome", "Oslo", "Lima", ""]),
                "member": chance.choice(["yes", "no"]),
                "since": f"20{chance.randrange(10, 26)}-{chance.randrange(1, 13):02}-15",
                "note": f"note {number}",
                "country": "IT",
                "label": "old" if age > 50 else "young",
            }
            writer.writerow(row | {name: cells[number] for name, cells in changes.items() if number in cells})
    return file


def spec_of(file: Path, **dataset: Any) -> TrainJobSpec:
    return TrainJobSpec.model_validate(document_of(file, **dataset))


def document_of(file: Path, **dataset: Any) -> dict[str, Any]:
    return {
        "model": {"tableClassifier": TABM},
        "dataset": {"train": {"uri": str(file)}, "label": "label", "loader": "dataLoader", **dataset},
    }


def fitted_on(file: Path, **dataset: Any) -> tuple[Fitted, TableInput]:
    fitted = fit(spec_of(file, **dataset))
    return fitted, input_of(fitted.preprocessor, TableInput)


def types(table: TableInput) -> dict[str, str]:
    return {column.name: column.type for column in table.read}


def notes_of(fitted: Fitted) -> list[str]:
    assert fitted.profile is not None
    return fitted.profile.notes


def test_types_are_found_and_told(tmp_path: Path) -> None:
    fitted, table = fitted_on(write_customers(tmp_path / "rows.csv"))
    assert types(table) == {"age": "number", "income": "number", "city": "category", "member": "flag", "since": "date"}
    assert [feature.part for column in table.read for feature in column.numbers] == [
        *("value", "missing", "value", "value", "value", "month", "weekday")
    ]
    assert table.cardinalities == [4]
    assert fitted.preprocessor.target.classes == ["old", "young"]
    notes = notes_of(fitted)
    assert "2 columns of numbers: age, income" in notes
    assert "1 column of dates: since" in notes
    assert notes[4] == (
        "columns left out: id (numbers the rows), empty (empty), note (identifiers or texts: most rows have a value of "
        "their own; the type text reads texts), country (the same in every row)"
    )


def test_types_and_columns_may_be_given(tmp_path: Path) -> None:
    file = write_customers(tmp_path / "rows.csv")
    _, table = fitted_on(file, columns={"age": "category", "income": "ignore", "note": "category"})
    assert types(table)["age"] == types(table)["note"] == "category"
    assert "income" not in types(table)
    _, table = fitted_on(file, features=["income", "age"])
    assert types(table) == {"income": "number", "age": "number"}
    for dataset, message in [
        ({"columns": {"agee": "number"}}, 'rows.csv has no column "agee"'),
        ({"features": ["age"], "columns": {"city": "category"}}, "city, which spec.dataset.features does not name"),
        ({"features": ["country"]}, r"no column can be learned from: country \(the same in every row\)"),
    ]:
        with pytest.raises(DataError, match=message):
            fit(spec_of(file, **dataset))


def test_types_are_those_of_all_rows_not_of_the_first(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    lines = ["word,late,note,value,label", *(f"{n % 7},,note {n},{n * 7 % 101},{n % 2}" for n in range(13_000))]
    lines += [f"w{n % 7},{n % 11},note {chr(255) if n < 5 else n},{n * 7 % 101},{n % 2}" for n in range(3_000)]
    file.write_bytes("\n".join(lines).encode("latin-1"))
    fitted, table = fitted_on(file)
    assert types(table) == {"word": "category", "late": "number", "value": "number"}
    assert sum(fitted.rows.values()) == 16_000
    given, _ = fitted_on(file, columns=types(table), features=table.columns)
    assert given.contents == fitted.contents


def test_rows_are_the_same_however_they_are_stored_and_divided_into_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = write_customers(tmp_path / "rows.csv", 300, city={n: f"{n}" for n in range(90)}).read_text().splitlines()
    whole, table = fitted_on(tmp_path / "rows.csv")
    (tmp_path / "parts").mkdir()
    for number in range(3):
        text = "\n".join([lines[0], *lines[1 + 100 * number : 101 + 100 * number]])
        (tmp_path / "parts" / f"{number}.csv.gz").write_bytes(gzip.compress(text.encode()))
    write_table(read_csv(tmp_path / "rows.csv"), tmp_path / "rows.parquet", row_group_size=70)
    monkeypatch.setattr("trainjob.data.read.chunking.TASK_BYTES", 1)  # a task for each file
    for file in (tmp_path / "parts", tmp_path / "rows.parquet"):
        fitted, same = fitted_on(file)
        if file.suffix != ".parquet":  # which spells numbers and flags in its own way
            assert (fitted.contents, fitted.split, same) == (whole.contents, whole.split, table)
        assert types(same) == types(table)
        assert [column.categories for column in same.read] == [column.categories for column in table.read]


def test_a_column_that_is_constant_in_the_sample_leaves_the_split_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainjob.kinds.inputs.table_scan.MAX_SAMPLED", 50)
    file = tmp_path / "rows.csv"
    file.write_text("\n".join(["rare,value,label", *(f"{n < 3},{n * 7 % 1009},{n % 2}" for n in range(1_000))]))
    fitted, table = fitted_on(file)
    assert table.columns == ["value"]
    assert {name: len(rows) for name, rows in prepare_examples(spec_of(file), fitted).items()} == fitted.rows


def test_a_column_whose_other_values_are_all_set_aside_leaves_nothing_to_learn_from(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"  # equal rows are on one side, so the training rows have one value
    file.write_text("\n".join(["value,label", *(f"{1 if n % 5 else 2.5},{n % 2}" for n in range(100))]))
    with pytest.raises(DataError, match=r"value \(the same in all 80 training rows that were read\)"):
        fit(spec_of(file))


def test_columns_that_are_the_same_in_all_rows_leave_nothing_to_learn_from(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("\n".join(["note,label", *(f",{n % 2}" for n in range(100))]))
    with pytest.raises(DataError, match=r"no column can be learned from: note \(the same in all rows\)$"):
        fit(spec_of(file, columns={"note": "text"}))


def test_a_column_of_one_value_and_empty_cells_is_learned_from(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    rows = (f"{'yes' if n % 3 else ''},{'EU' if n % 4 else ''},{'5' if n % 5 else ''},{n},{n % 2}" for n in range(100))
    file.write_text("\n".join(["sold,region,size,value,label", *rows]))
    _, table = fitted_on(file)
    assert types(table) == {"sold": "flag", "region": "category", "size": "number"}
    assert [[each.part for each in column.numbers] for column in table.read] == [["missing"], [], ["missing"]]
    assert table.cardinalities == [2]


def test_columns_are_fitted_on_rows_with_any_cell(tmp_path: Path) -> None:
    file, code = tmp_path / "rows.csv", "a\x1fbé"  # with the separator of the cells that are hashed
    rows = [f"{code if n % 4 else 'a'},{n % 4 > 0},{n / 7},{n % 3}" for n in range(100)]
    file.write_text("\n".join(["code,flag,value,label", *rows]))
    _, table = fitted_on(file)
    assert types(table) == {"code": "category", "flag": "flag", "value": "number"}
    assert table.read[0].categories is not None
    assert table.read[0].categories.names == [code, "a"]


def test_cells_are_told_apart_wherever_they_hold_the_separator() -> None:
    columns = [pa.array(["a\x1f", "a", None, "é"]), pa.array(["b", "\x1fb", "", "\x1f\x1f"])]
    rows = joined_cells(columns)
    assert len(set(rows)) == 4
    assert [each.to_pylist() for each in separated_cells(rows, 2)] == [
        ["a\x1f", "a", "", "é"],
        ["b", "\x1fb", "", "\x1f\x1f"],
    ]


def test_a_header_alone_has_no_rows(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("value,label\n")
    with pytest.raises(DataError, match=r"rows\.csv has no rows$"):
        fit(spec_of(file))


def test_numbers_near_the_largest_are_read_without_a_warning(tmp_path: Path) -> None:
    file = write_customers(tmp_path / "rows.csv", income=dict(enumerate(["1e308", "-1e308", "inf", "inf", "-inf"])))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, table = fitted_on(file)
    assert types(table)["income"] == "number"


def test_cells_that_are_no_numbers_are_named_by_row(tmp_path: Path) -> None:
    file = write_customers(tmp_path / "rows.csv", income={4: "n/a", 5: "-nan", 6: "abc", 17: "1e5x", 130: "12,5"})
    with pytest.raises(DataError) as caught:
        fit(spec_of(file))
    assert str(caught.value) == (
        f"spec.dataset.train ({file}): 3 of 200 rows cannot be used\n"
        '  3 rows: column "income" does not hold a number (correct it, or set dataset.columns to {income: category} or '
        f'{{income: ignore}}): {file}, row 7: "abc"; row 18: "1e5x"; row 131: "12,5"\n'
        "Correct these rows, or have them left out with `dataset.onBadRows: drop`."
    )
    fitted, _ = fitted_on(file, onBadRows="drop")
    assert sum(fitted.rows.values()) == 197
    assert sum(map(len, prepare_examples(spec_of(file, onBadRows="drop"), fitted).values())) == 197


def test_columns_that_must_be_asked_about_are_refused(tmp_path: Path) -> None:
    file = write_customers(tmp_path / "rows.csv", age={number: f"{number},5" for number in range(200)})
    with pytest.raises(
        DataError, match=r'"age" holds numbers or dates in a spelling that is not read, such as 0,5: write'
    ):
        fit(spec_of(file))
    for spelling in ("${}", "{} €", "{}%", "3.{}.2026", "3/{}/2026", "2026/3/{}", "{}-Mar-2026", "{}-03-2026 10:30"):
        write_customers(file, age={number: spelling.format(10 + number % 3) for number in range(200)})
        first = re.escape(spelling.format(10))
        with pytest.raises(DataError, match=f'"age" holds numbers or dates .*, such as {first}: write'):
            fit(spec_of(file))
    mixed = ("2026-03-{}", "{}.03.2026", "03/{}/2026")
    write_customers(file, age={number: mixed[number % 3].format(10 + number % 13) for number in range(200)})
    with pytest.raises(DataError, match=r'"age" holds numbers or dates .*, such as 11\.03\.2026: write'):
        fit(spec_of(file))
    file.write_text("a,a,label\n1,2,x\n3,4,y\n")
    with pytest.raises(DataError, match='has 2 columns "a": rename all but one'):
        fit(spec_of(file))


@pytest.mark.parametrize(
    "name", ["price: net", "size ", "#", "2026", "yes", "a, b", "{x}", "it's", "1e3", '"q"', "first\nline"]
)
def test_advice_on_a_column_is_yaml_whatever_its_name(tmp_path: Path, name: str) -> None:
    file = tmp_path / "rows.parquet"
    for cells in [f"{n % 9},5" for n in range(60)], [*map(str, range(59)), "word"]:
        write_table(pa.table({name: cells, "other": range(60), "label": ["a", "b"] * 30}), file)
        with pytest.raises(DataError) as caught:
            fit(spec_of(file))
        (advice,) = re.findall(r"set dataset\.columns to ({.*: category}) or ({.*: ignore})", str(caught.value))
        assert [yaml.load(each, Loader) for each in advice] == [{name: "category"}, {name: "ignore"}]


def test_codes_with_leading_zeros_are_categories(tmp_path: Path) -> None:
    zips = {number: f"0{number % 7}" for number in range(200)}
    _, table = fitted_on(write_customers(tmp_path / "rows.csv", age=zips))
    assert types(table)["age"] == "category"


def test_whole_numbers_that_floats_confuse_are_categories(tmp_path: Path) -> None:
    ids = {number: str(2**53 + number % 3) for number in range(200)}
    _, table = fitted_on(write_customers(tmp_path / "rows.csv", age=ids))
    assert types(table)["age"] == "category"
    different = {number: str(2**53 + number) for number in range(0, 200, 2)}
    fitted, table = fitted_on(write_customers(tmp_path / "rows.csv", income=different))
    assert "income" not in types(table)
    assert any("income (identifiers or texts" in note for note in notes_of(fitted))
    large = {number: f"{number}e20" for number in range(200)}
    assert types(fitted_on(write_customers(tmp_path / "rows.csv", income=large))[1])["income"] == "number"


def test_a_column_with_very_many_categories_is_limited(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    lines = [f"{number // 3},{'ab'[number % 2]}" for number in range(36_000)]
    file.write_text("\n".join(["code,label", *(f"c{line}" for line in lines)]))
    with pytest.raises(DataError, match=r"learned from: code \(more than 10,000 different values, as identi"):
        fit(spec_of(file))
    fitted, table = fitted_on(file, columns={"code": "category"})
    assert table.cardinalities == [1001]
    assert 'column "code": only the 1,000 most frequent values are categories of their own' in notes_of(fitted)


def test_a_category_of_which_no_value_occurs_twice_is_told(tmp_path: Path) -> None:
    fitted, _ = fitted_on(write_customers(tmp_path / "rows.csv"), columns={"note": "category"})
    assert 'column "note": each value is in one row, so nothing can be learned from it' in notes_of(fitted)


def cells_of(table: TableInput, **cells: Any) -> dict[str, np.ndarray]:
    row = table.example()["rows"][0]
    rows = table.table([row | cells], lambda index: f"row {index + 1}")
    return table.batch(Examples.from_table(pa.table({"values": table.transform(rows)})))


def test_odd_cells_stay_within_what_was_learned(tmp_path: Path) -> None:
    _, table = fitted_on(write_customers(tmp_path / "rows.csv"))
    largest = max(max(levels) for levels in table.levels)
    for odd in ("inf", "1e400", 1e30):
        assert cells_of(table, income=odd)["numbers"].max() <= largest
    names = table.read[2].categories
    assert names is not None
    assert names.names[0] in ("Rome", "Oslo", "Lima")
    assert cells_of(table, city="Paris")["categories"].tolist() == [[0]]  # as the most frequent one: none was rare
    assert cells_of(table, city=None)["categories"].tolist() == [[names.missing]]
    present, missing = (cells_of(table, age=age)["numbers"][0] for age in (40, float("nan")))
    assert np.flatnonzero(present != missing).tolist() == [0, 1]  # the number and whether it is missing
    same = [cells_of(table, member=member, since=since) for member, since in (("yes", "2020-01-15"), ("TRUE", None))]
    assert same[0]["numbers"][0, 3] == same[1]["numbers"][0, 3]
    with pytest.raises(UserError, match='row 1: column "age" does not hold a number: "forty"'):
        cells_of(table, age="forty")
    with pytest.raises(UserError, match="row 1 has no age and no city; the model takes"):
        table.table([{"income": 1, "member": "no", "since": ""}], lambda index: f"row {index + 1}")
    with pytest.raises(UserError, match="takes mappings from column to value, not list"):
        table.table([[1, 2]], lambda index: f"row {index + 1}")


def test_a_number_that_was_never_missing_counts_as_the_median_for_boosted_trees() -> None:
    """LightGBM would take it for 0, but a number that was missing in training for what that meant."""
    cells = {"income": ["10", "20", "90"], "age": ["30", "", "50"]}
    columns = [TableColumn.fit(name, "number", pa.array(values)) for name, values in cells.items()]
    table = TableInput([column for column in columns if column is not None])
    where: Any = row_number
    plain = table.plain(Rows(pa.table({"income": ["", "7"], "age": ["", "7"]}), where))
    income, age, age_is_missing = (column.to_numpy() for column in plain.columns)
    assert income.tolist() == [20, 7]
    assert np.isnan(age[0])
    assert age_is_missing.tolist() == [1, 0]


def test_one_fit_is_as_another_and_is_saved(tmp_path: Path) -> None:
    file = write_customers(tmp_path / "rows.csv")
    fitted, table = fitted_on(file)
    assert fitted_on(file)[1] == table
    fitted.preprocessor.save(tmp_path)
    assert load_preprocessor(tmp_path) == fitted.preprocessor


@pytest.mark.parametrize("loss", ["crossEntropy", "binaryCrossEntropy"])
@pytest.mark.parametrize("features", [["age", "city"], ["age"], ["city"]])
def test_members_learn_each_by_itself_and_answer_together(tmp_path: Path, features: list[str], loss: str) -> None:
    spec = spec_of(write_customers(tmp_path / "rows.csv"), features=features)
    fitted = fit(spec)
    model = Model.model_validate({"tableClassifier": TABM | {"loss": {loss: {}}}})
    module: Any = build(model, fitted.preprocessor)
    examples = prepare_examples(spec, fitted)["train"]
    inputs = {name: torch.from_numpy(each) for name, each in fitted.preprocessor.input.batch(examples).items()}
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(3)
        probabilities = module.eval().probabilities(module(**inputs))
        expected = module.network(inputs.get("numbers"), inputs.get("categories"))
    each = expected.softmax(dim=2) if loss == "crossEntropy" else expected.sigmoid()
    torch.testing.assert_close(probabilities, each.mean(dim=1))
    save_model(module, fitted.preprocessor, tmp_path / "model")
    loaded, _ = load_model(tmp_path / "model")
    torch.testing.assert_close(loaded(**inputs), module(**inputs))
    assert module.train()(**inputs).shape == (len(examples), 3, 2)


def test_the_loss_of_an_ensemble_is_the_mean_of_its_members() -> None:
    answers, labels = torch.randn(5, 3, 2), torch.tensor([0, 1, 1, 0, 1])
    losses = torch.nn.CrossEntropyLoss(reduction="none")
    found = of_members(losses, answers, labels)
    torch.testing.assert_close(found, torch.stack([losses(answers[:, k], labels) for k in range(3)]).mean(dim=0))
    torch.testing.assert_close(of_members(losses, answers[:, 0], labels), losses(answers[:, 0], labels))


def test_rows_are_predicted_from_mappings_and_tables(tmp_path: Path) -> None:
    file = write_customers(tmp_path / "rows.csv")
    predictor = Predictor.load(make_run(tmp_path / "run", document_of(file)))
    with file.open(newline="") as opened:
        rows = list(csv.DictReader(opened))[:20]
    probabilities = predictor.predict_proba(rows)
    typed = [row | {"age": float(row["age"] or "nan"), "income": float(row["income"])} for row in rows]
    np.testing.assert_allclose(predictor.predict_proba(typed), probabilities)
    shuffled = pa.Table.from_pylist(typed).select(list(reversed(COLUMNS)))
    np.testing.assert_allclose(predictor.predict_proba(shuffled), probabilities)
    with pytest.raises(UserError, match='has no column "age"'):
        predictor.predict(shuffled.drop_columns(["age"]))
    table = input_of(predictor.preprocessor, TableInput)
    assert len(predictor.predict(json.loads(json.dumps(table.example()["rows"])))) == 1


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{", "is not JSON"),
        ("[1]", "must be an object of columns and values"),
        ('{"age": [1]}', "must be an object of columns and values"),
        ('{"age": 1}', "has no income and no city"),
        ('{"age": "old", "income": 1, "city": "", "member": null, "since": ""}', 'does not hold a number: "old"'),
    ],
)
def test_a_row_on_the_command_line(tmp_path: Path, row: str, message: str) -> None:
    run = make_run(tmp_path / "run", document_of(write_customers(tmp_path / "rows.csv")))
    good = '{"age": 41, "income": 1e4, "city": "Oslo", "member": true, "since": null, "other": 1}'
    done = CliRunner().invoke(app, ["predict", str(run), "--row", good])
    assert done.exit_code == 0
    assert "young" in done.output
    failed = CliRunner().invoke(app, ["predict", str(run), "--row", row])
    assert message in str(failed.exception)


@pytest.mark.parametrize("leak", ["same", "other words", "none"])
def test_a_column_that_tells_the_label_is_named(tmp_path: Path, leak: str) -> None:
    with (write_customers(tmp_path / "rows.csv")).open(newline="") as file:
        labels = [row["label"] for row in csv.DictReader(file)]
    words = {"same": {"old": "old", "young": "young"}, "other words": {"old": "1", "young": "0"}}.get(leak)
    cells = {number: words[label] for number, label in enumerate(labels)} if words else {}
    fitted, _ = fitted_on(write_customers(tmp_path / "rows.csv", city=cells))
    found = [note for note in notes_of(fitted) if "alone determines the label of every row" in note]
    assert [note.startswith('column "city"') for note in found] == ([True] if words else [])


def test_a_number_that_is_the_label_in_another_unit_tells_it() -> None:
    meters = np.random.default_rng(0).normal(0, 10, 100)
    labels = ReadLabels.of(pa.array([f"{value:.17g}" for value in meters]))
    assert determine_labels(pa.array([f"{100 * value + 3:.17g}" for value in meters]), labels)
    assert not determine_labels(
        pa.array([f"{100 * value + number % 2:.17g}" for number, value in enumerate(meters)]), labels
    )
    assert not determine_labels(pa.array([None, *[f"{value:.17g}" for value in meters[1:]]], pa.string()), labels)


def test_cells_of_unknown_categories_are_counted_where_rows_are_predicted(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", document_of(write_customers(tmp_path / "rows.csv")))
    predict, evaluate = ["predict", str(run)], ["evaluate", str(run)]
    output = ["-o", str(tmp_path / "predictions.csv")]
    CliRunner().invoke(app, [*predict, str(tmp_path / "rows.csv"), *output], catch_exceptions=False)
    new = write_customers(tmp_path / "new.csv", city={3: "Atlantis", 5: " Rome ", 70: "Atlantis", 8: "Ys"})
    for command in [*predict, str(new), *output], [*evaluate, str(new)]:
        with pytest.warns(Notice, match="cells whose category the model has not learned, of 200 rows: city 3$"):
            CliRunner().invoke(app, command, catch_exceptions=False)
    with new.open(newline="") as opened:
        rows = list(csv.DictReader(opened))
    predictor = Predictor.load(run)
    with pytest.warns(Notice, match="has not learned, of 200 rows: city 3$"):
        predictor.predict(rows)
    with pytest.warns(Notice, match="has not learned, of 1 row: city 1$"):
        predictor.predict_proba(rows[3:4])
    with pytest.warns(Notice, match="has not learned, of 1 row: city 1$"):
        CliRunner().invoke(app, [*predict, "--row", json.dumps(rows[3])], catch_exceptions=False)
    predictor.predict(rows[4:8])


def test_unknown_categories_of_the_sets_that_judge_a_run_are_told(tmp_path: Path) -> None:
    train = write_customers(tmp_path / "rows.csv")
    validation = write_customers(tmp_path / "validation.csv", city={3: "Atlantis", 5: "Ys"})
    test = write_customers(tmp_path / "test.csv", city={3: "Atlantis"})
    fitted, _ = fitted_on(train, validation={"uri": str(validation)}, test={"uri": str(test)})
    words = "cells whose category the model has not learned, of 200 rows"
    assert notes_of(fitted)[-2:] == [f"validation: {words}: city 2", f"test: {words}: city 1"]


def test_a_code_without_its_zeros_is_not_taken_for_a_rare_category(tmp_path: Path) -> None:
    codes = {number: ("01003", "02115", "10001")[number % 3] for number in range(200)}
    run = make_run(tmp_path / "run", document_of(write_customers(tmp_path / "rows.csv", city=codes)))
    predictor = Predictor.load(run)
    row = {"age": 30, "income": 1, "city": "01003", "member": "yes", "since": "2020-01-15"}
    assert len(predictor.predict([row, row | {"city": 10001}])) == 2
    with pytest.warns(Notice, match="has not learned, of 2 rows: city 1$"):
        predictor.predict([row, row | {"city": "new"}])
    with pytest.raises(UserError, match='row 2: column "city": 1003 is not a category, but 01003 is: give it as text'):
        predictor.predict([row, row | {"city": 1003}])
    digits = pytest.warns(Notice, match='column "city": 2115 is not a category, but 02115 is: write codes with')
    with digits, pytest.warns(Notice, match="has not learned, of 1 row: city 1$"):
        predictor.predict(pa.Table.from_pylist([{**row, "city": "2115"}]))


def test_a_long_number_that_has_lost_digits_is_not_taken_for_a_rare_category(tmp_path: Path) -> None:
    cities = {number: str(2**60 + 3 * (number % 3)) for number in range(200)}
    predictor = Predictor.load(
        make_run(tmp_path / "run", document_of(write_customers(tmp_path / "rows.csv", city=cities)))
    )
    row = {"age": 30, "income": 1, "city": 2**60 + 3, "member": "yes", "since": "2020-01-15"}
    assert len(predictor.predict([row])) == 1
    lost = r'row 1: column "city": 1.1529\d+e\+18 is not a category, but 115\d+ is: give it as text, with all'
    with pytest.raises(UserError, match=lost):
        predictor.predict([row | {"city": float(2**60 + 3)}])
    for value in ([1, 2], {"a": 1}):
        with pytest.raises(UserError, match=r'row 1: column "city": a cell is one value, not a (list|dict)'):
            predictor.predict([row | {"city": value}])
    twice = pd.concat([pd.DataFrame([row]), pd.DataFrame([row])[["age"]]], axis=1)
    with pytest.raises(UserError, match="the rows do not form a table: Duplicate column names"):
        predictor.predict(twice)


@pytest.mark.parametrize("offset", [0, 3])
def test_texts_that_begin_like_codes_are_found(offset: int) -> None:
    begins = {"00": True, "-01": True, "+00.": True, "0.5": False, "-0.5": False, "0": False, "": False, "+0": False}
    begins |= {"0a": False, "é00": False, "007": True, "10": False, "--01": False, "1": False}
    found = begins_with_zero_and_digit(pa.array([*begins, None])[offset:])
    assert found.tolist() == [*begins.values(), False][offset:]
    assert not len(begins_with_zero_and_digit(pa.array([], pa.string())))


def test_categories_that_look_alike_are_told_in_training_and_in_predictions(tmp_path: Path) -> None:
    cities = {number: ("Oslo", "oslo", "Malm\u00f6")[number % 3] for number in range(200)}
    document = document_of(write_customers(tmp_path / "rows.csv", city=cities))
    [note] = [note for note in notes_of(fit(TrainJobSpec.model_validate(document))) if "invisible" in note]
    assert note.startswith('column "city": categories that differ only in case, blanks or invisible characters are ')
    assert '"Oslo" (' in note
    predictor = Predictor.load(make_run(tmp_path / "run", document))
    row = {"age": 30, "income": 1, "city": "Malmo\u0308", "member": "yes", "since": "2020-01-15"}
    alike = pytest.warns(
        Notice, match='column "city": "Malmo\u0308" is not a category, but "Malm\u00f6" is: write it like'
    )
    with alike, pytest.warns(Notice, match="has not learned, of 1 row: city 1$"):
        predictor.predict([row])


def test_a_field_of_the_form_has_several_lines_for_texts_alone() -> None:
    categories = Categories(names=["a text", "…"], other=0, missing=0, count=2)
    columns = [TableColumn("offer", "text", [], None), TableColumn("kind", "category", [], categories)]
    assert [(each.is_text, each.placeholder) for each in TableInput(columns, None).form_fields] == [
        (True, None),
        (False, "a text"),
    ]


def test_columns_that_are_called_like_predictions_are_kept(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", document_of(write_customers(tmp_path / "rows.csv")))
    rows = read_csv(tmp_path / "rows.csv").slice(0, 3)
    write_csv(rows.append_column("prediction", pa.array(["x", "y", "z"])), tmp_path / "new.csv")
    command = ["predict", str(run), str(tmp_path / "new.csv"), "--output", str(tmp_path / "out.csv")]
    with pytest.warns(Notice, match="are written under others: prediction as input_prediction"):
        result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    written = read_csv(tmp_path / "out.csv")
    assert written["input_prediction"].to_pylist() == ["x", "y", "z"]
    assert set(written["prediction"].to_pylist()) <= {"old", "young"}


def test_columns_that_hold_lists_are_told(tmp_path: Path) -> None:
    rows = [{"age": n % 7, "tags": ["a"] if n == 150 else n % 5, "label": n % 2} for n in range(200)]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    fitted, table = fitted_on(file)
    assert table.columns == ["age"]
    assert "columns left out: tags (it holds lists or objects)" in notes_of(fitted)
    with pytest.raises(DataError, match='line 151: "tags" contains list, not text'):
        fit(spec_of(file, columns={"tags": "number"}))
    file = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({"age": range(40), "tags": [["a"], []] * 20, "label": [0, 1] * 20}), file)
    with pytest.raises(DataError, match='"tags"'):
        fit(spec_of(file, columns={"tags": "category"}))
    assert fitted_on(file, columns={"tags": "ignore", "age": "number"})[1].columns == ["age"]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary(4), pa.uuid()], ids=str)
def test_columns_that_hold_bytes_are_told(tmp_path: Path, kind: pa.DataType) -> None:
    cells = pa.array([bytes([255, n, 0, 1]) * (4 if kind == pa.uuid() else 1) for n in range(60)], kind)
    file = tmp_path / "rows.parquet"
    write_table(pa.table({"age": [n % 7 for n in range(60)], "key": cells, "label": ["a", "b"] * 30}), file)
    fitted, table = fitted_on(file)
    assert table.columns == ["age"]
    assert "columns left out: key (it holds bytes)" in notes_of(fitted)
