"""The page of `trainjob serve` shows the model's answers."""

import csv
import json
import shlex
from pathlib import Path

from chromium import Browser

from http_servers import served
from predictor_runs import make_run
from trainjob.predictor import Predictor


def test_spans_are_shown_by_their_words(chromium: Browser, tmp_path: Path) -> None:
    rows = [(f"🎉 Ada Lovelace went to Oslo {number} times", [[2, 14, "person"]]) for number in range(40)]
    train = tmp_path / "train.jsonl"
    train.write_text("".join(json.dumps({"text": text, "label": spans}) + "\n" for text, spans in rows))
    encoder = {"layers": 1, "hiddenSize": 16, "heads": 2, "vocabularySize": 300}
    spec = {
        "model": {"tokenClassifier": {"encoder": encoder, "maxLength": 32}},
        "dataset": {"train": {"uri": str(train)}, "text": ["text"], "label": "label"},
    }
    text = rows[0][0]
    with served(Predictor.load(make_run(tmp_path / "run", spec)), "names") as server:
        spans = server.predict({"texts": [text]}).json["predictions"][0]["spans"]
        chromium.visit(f"http://127.0.0.1:{server.port}/")
        shown, of_nothing = chromium.ask(text), chromium.ask("")
    assert len(spans) > 1
    assert shown == [[text[each["start"] : each["end"]], each["type"], f"{each['probability']:.4f}"] for each in spans]
    assert of_nothing == [["no spans found"]]


def test_the_command_is_one_that_a_shell_reads(chromium: Browser, tmp_path: Path) -> None:
    train = tmp_path / "train.csv"
    with train.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["l'âge", "name", "label"])
        writer.writerows([number % 7, ["O'Brien", "D'Arcy"][number // 2 % 2], number % 2] for number in range(40))
    spec = {
        "model": {"tableClassifier": {"tabm": {}}},
        "dataset": {"train": {"uri": str(train)}, "label": "label"},
    }
    predictor = Predictor.load(make_run(tmp_path / "run", spec))
    with served(predictor, "people") as server:
        chromium.visit(f"http://127.0.0.1:{server.port}/")
        *_, body = shlex.split(chromium.text_of("command"))
        html = server.get("/").text
    assert json.loads(body) == predictor.preprocessor.input.example()
    assert "'" in json.loads(body)["rows"][0]["name"]
    assert html.count('rows="1" placeholder="') == 2, "each cell shows what it may hold"


def test_names_of_classes_are_not_broken_on_a_phone(chromium: Browser, tmp_path: Path) -> None:
    train = tmp_path / "train.csv"
    train.write_text("text,label\n" + "".join(f"row {n},{('entailment', 'contradiction')[n % 2]}\n" for n in range(40)))
    encoder = {"layers": 1, "hiddenSize": 16, "heads": 2, "vocabularySize": 300}
    spec = {
        "model": {"textClassifier": {"encoder": encoder, "maxLength": 32}},
        "dataset": {"train": {"uri": str(train)}, "text": ["text"], "label": "label"},
    }
    with served(Predictor.load(make_run(tmp_path / "run", spec)), "pairs") as server:
        chromium.visit(f"http://127.0.0.1:{server.port}/", 390)
        assert {name for name, *_ in chromium.ask("row 1")} == {"entailment", "contradiction"}
        assert chromium.faults() == []


def test_a_wrong_cell_and_the_predicted_number_are_named(chromium: Browser, tmp_path: Path) -> None:
    train = tmp_path / "train.csv"
    train.write_text("age,city,rent\n" + "".join(f"{n % 50},{'AB'[n % 2]},{100 + n}\n" for n in range(60)))
    spec = {
        "model": {"tableRegressor": {"tabm": {"members": 2, "hiddenSize": 8, "embeddingSize": 4}}},
        "dataset": {"train": {"uri": str(train)}, "label": "rent"},
    }
    with served(Predictor.load(make_run(tmp_path / "run", spec)), "rents") as server:
        chromium.visit(f"http://127.0.0.1:{server.port}/")
        assert "which predicts rent." in server.get("/").text
        assert chromium.ask("old", "A") == []
        problem = chromium.text_of("problem")
        assert len(chromium.ask("", "A")) == 1, "an empty field is a missing value"
        assert chromium.text_of("answer").startswith("rent")
    assert problem == 'age: does not hold a number: "old"; correct it, or leave it empty (null in JSON)'
