"""What the API says of rows that a model of pairs, of a table or of images cannot take."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from asking import Server
from http_servers import served
from predictor_runs import make_run
from trainjob.predictor import Predictor

LINES = [f"red {n},blue {n},{20 + n % 9},{('Rome', 'Oslo')[n % 3 // 2]},{'ab'[n % 2]}" for n in range(40)]
GOOD = {"age": 30, "city": "Rome"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("rows") / "train.csv"
    file.write_text("\n".join(["question,other,age,city,label", *LINES]))
    return file


def dataset(data: Path, **columns: Any) -> dict[str, Any]:
    return {"train": {"uri": str(data)}, "label": "label", **columns}


@pytest.fixture(scope="module")
def pairs(data: Path) -> Generator[Server]:
    model = {"textClassifier": {"encoder": {"layers": 1, "hiddenSize": 8, "heads": 2}, "maxLength": 16}}
    columns = dataset(data, text=["question"], textPair=["other"])
    run = make_run(data.parent / "pairs", {"model": model, "dataset": columns})
    with served(Predictor.load(run), "pairs") as server:
        yield server


@pytest.fixture(scope="module")
def table(data: Path) -> Generator[Server]:
    model = {"tableClassifier": {"tabm": {"members": 2, "hiddenSize": 8}}}
    columns = dataset(data, features=["age", "city"])
    run = make_run(data.parent / "table", {"model": model, "dataset": columns})
    with served(Predictor.load(run), "table") as server:
        yield server


A_PAIR = 'must be a pair of texts, such as ["a text", "another"]'


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({"texts": ["a"]}, f"texts[0]: {A_PAIR}"),
        ({"texts": [["a", "b"], ["a", "b", "c"]]}, f"texts[1]: {A_PAIR}"),
        ({"texts": [["a"]]}, f"texts[0]: {A_PAIR}"),
        ({"texts": [["a", 7]]}, "texts[0][1]: must be text, not a number"),
        ({"texts": "a"}, "texts: must be a list, not text"),
        ({"rows": [{"question": "a"}]}, "rows[0].other: is missing: send null if there is no value"),
        (
            {"rows": ["a"]},
            "rows[0]: must be an object with a value for each column, not text\n"
            'send, for example, {"rows": [{"question": "a text", "other": "a text"}]}',
        ),
    ],
)
def test_of_pairs(pairs: Server, body: Any, detail: str):
    answer = pairs.predict(body)
    assert (answer.status, answer.detail) == (422, detail)
    assert pairs.predict({"texts": [["a", "b"]]}).status == 200


EXAMPLE = 'send, for example, {"rows": [{"age": 24.0, "city": "Rome"}]}'


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({}, f"rows: is missing\n{EXAMPLE}"),
        ([], f"the request: must be an object, not a list\n{EXAMPLE}"),
        ({"texts": ["a"]}, f"rows: is missing\ntexts: is not known; a request has rows\n{EXAMPLE}"),
        ({"rows": []}, "rows: is empty: send at least one"),
        ({"rows": [GOOD] * 1001}, "rows: has more than 1,000: send fewer at a time"),
        ({"rows": [GOOD, {"age": 1}]}, "rows[1].city: is missing: send null if there is no value"),
        (
            {"rows": [GOOD, {"age": "old", "city": "Rome"}]},
            'rows[1].age: does not hold a number: "old"; correct it, or leave it empty (null in JSON)',
        ),
        ({"rows": [{"age": [1], "city": "Rome"}]}, "rows[0].age: must be text, a number, true, false or null"),
    ],
)
def test_of_tables(table: Server, body: Any, detail: str):
    answer = table.predict(body)
    assert (answer.status, answer.detail) == (422, detail)
    assert table.predict({"rows": [GOOD, {"age": None, "city": None}]}).status == 200


def test_of_other_paths_and_methods(table: Server):
    assert table.get("/nothing").detail == "there is no /nothing: send rows to /predict, or see /docs"
    said = "/predict does not take GET: send rows with POST to /predict, or see /docs"
    assert table.get("/predict").detail == said


def test_unknown_categories_of_tables_are_counted(table: Server):
    assert table.predict({"rows": [GOOD, GOOD | {"city": "Atlantis"}, GOOD | {"city": None}]}).status == 200
    assert 'trainjob_serving_unknown_categories_total{column="city"} 1.0' in table.get("/metrics").text
