"""TrainJobs that `trainjob init` proposes: valid, honest about what is guessed, and as the data needs them."""

import csv
import json
import random
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from tiny_sets import write_digits, write_texts
from trainjob.api import TrainJobSpec
from trainjob.api.load import load_trainjob
from trainjob.cli.app import app
from trainjob.data import fit
from trainjob.data.read.csv_header import doubt_about_header, title_above_header
from trainjob.errors import DataError, Notice

CHANCE = random.Random(0)


def init(*arguments: Any) -> Result:
    return CliRunner().invoke(app, ["init", *map(str, arguments)])


def proposal(folder: Path, data: Path, *arguments: Any) -> tuple[dict[str, Any], str]:
    """The spec that is proposed, which is valid, and the text of the file."""
    file = folder / "proposed.yaml"
    done = init(data, "-o", file, "--force", *arguments)
    assert done.exit_code == 0, done.output + str(done.exception)
    spec = load_trainjob(file).spec
    return spec.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True), file.read_text()


def write(file: Path, header: list[str], rows: Iterable[list[Any]]) -> Path:
    with file.open("w", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerow(header)
        writer.writerows(rows)
    return file


def customers(folder: Path) -> Path:
    rows = ([n, CHANCE.randrange(90), CHANCE.choice("AB"), CHANCE.choice(["yes", "no"]), n / 7] for n in range(100))
    return write(folder / "customers.csv", ["id", "age", "city", "churned", "income"], rows)


def test_a_table_with_a_label(tmp_path: Path) -> None:
    spec, text = proposal(tmp_path, customers(tmp_path), "--label", "churned")
    assert spec["model"] == {"tableClassifier": {"tabm": {}}}
    assert spec["dataset"] == {"train": {"uri": str(tmp_path / "customers.csv")}, "label": "churned"}
    assert text.startswith("# train 80 rows, validation 20 rows\n# 2 classes; training rows of each:")
    assert "# columns left out: id (numbers the rows)\n" in text
    assert "train: {uri: customers.csv}" in text  # relative to the file


def test_few_dates_are_no_classes(tmp_path: Path) -> None:
    rows = ([n / 7, CHANCE.choice("AB"), f"2026-01-0{n % 3 + 1}"] for n in range(100))
    spec, _ = proposal(tmp_path, write(tmp_path / "sales.csv", ["price", "shop", "day"], rows))
    assert spec["dataset"]["label"] == "shop"


def test_a_label_alone_is_nothing_to_learn_from(tmp_path: Path) -> None:
    done = init(write(tmp_path / "labels.csv", ["label"], ([CHANCE.choice("AB")] for _ in range(40))))
    assert "tableClassifier: there is no column but label\n" in str(done.exception)


def test_the_columns_of_an_annotation_tool_are_no_features(tmp_path: Path) -> None:
    texts = ["the red bicycle was sold", "an old blue car stood there"]
    rows = [
        {"id": n, "text": f"{texts[n % 2]} {n}", "topic": "ab"[n % 2], "annotator": n % 3, "annotation_id": 7 * n % 101}
        for n in range(60)
    ]
    data = tmp_path / "export.json"
    data.write_text(json.dumps(rows))
    spec, text = proposal(tmp_path, data, "--label", "topic")
    assert "textClassifier" in spec["model"]
    assert "tableClassifier" not in text


def test_a_label_that_is_not_clear_is_asked_for(tmp_path: Path) -> None:
    rows = ([CHANCE.choice("AB"), CHANCE.choice(["yes", "no"]), f"C-{n}"] for n in range(100))
    done = init(write(tmp_path / "customers.csv", ["city", "has left", "code"], rows))
    assert done.exit_code == 1
    assert "could be city, has left: name it, as with `--label 'has left'`" in str(done.exception)


def test_a_label_that_is_guessed_is_said_to_be(tmp_path: Path) -> None:
    rows = ([CHANCE.random(), CHANCE.choice("ab"), CHANCE.choice("xyz")] for _ in range(60))
    spec, text = proposal(tmp_path, write(tmp_path / "rows.csv", ["size", "shape", "kind"], rows))
    assert spec["dataset"]["label"] == "kind"
    assert "label: kind  # GUESSED: the last column with few different values; it could also be shape\n" in text


@pytest.mark.parametrize("target", ["whole", "fractions"])
def test_a_label_of_many_numbers_is_predicted_as_a_number(tmp_path: Path, target: str) -> None:
    rows = ([n * 7 % 90, CHANCE.choice("ab"), n % 60 if target == "whole" else n / 7] for n in range(180))
    spec, text = proposal(tmp_path, write(tmp_path / "rows.csv", ["size", "shape", "target"], rows))
    assert spec["model"] == {"tableRegressor": {"tabm": {}}}
    assert spec["dataset"]["label"] == "target"
    assert "# labels of the training rows: from 0 to" in text
    spec, _ = proposal(tmp_path, tmp_path / "rows.csv", "--label", "shape")
    assert spec["model"] == {"tableClassifier": {"tabm": {}}}


def test_a_last_column_of_numbers_is_guessed_to_be_the_label(tmp_path: Path) -> None:
    rows = [[n, CHANCE.randrange(900), "ab"[n % 2], "xyz"[n % 3], n * 7 % 100] for n in range(100)]
    data = write(tmp_path / "rows.csv", ["Id", "area", "shape", "kind", "price"], rows)
    spec, text = proposal(tmp_path, data)
    assert spec["model"] == {"tableRegressor": {"tabm": {}}}
    assert "label: price  # GUESSED: the last column with many different values; it could also be area\n" in text
    texts = ([n, f"offer {CHANCE.random()} of today", n * 7 / 100] for n in range(100))
    spec, text = proposal(tmp_path, write(tmp_path / "rows.csv", ["Id", "offer", "cost"], texts))
    assert spec["model"] == {"textRegressor": {"encoder": {}}}
    assert "label: cost  # GUESSED: the only column with many different values\n" in text


def test_columns_that_cannot_be_read_are_left_out_and_named(tmp_path: Path) -> None:
    rows = [[n % 7, f"{n},50", f"0{1 + n % 9}.01.2025", "ab"[n % 2]] for n in range(60)]
    data = write(tmp_path / "rows.csv", ["amount", "price", "day", "label"], rows)
    spec, text = proposal(tmp_path, data)
    assert spec["dataset"]["columns"] == {"price": "ignore", "day": "ignore"}
    for name, cell in ("price", "0,50"), ("day", "01.01.2025"):
        said = f'the column "{name}" holds numbers or dates in a spelling that is not read, such as {cell}: write'
        assert f"# Left out: {said}" in text
    done = init(data, "--label", "price", "--kind", "tableRegressor")
    assert '"price" does not hold numbers, or spells them such as 12,5: write them as 12.5' in str(done.exception)


def test_a_label_that_cannot_be_read_is_named_beside_texts(tmp_path: Path) -> None:
    rows = [[f"a text of some words {n}", f"{n},50"] for n in range(60)]
    spec, text = proposal(tmp_path, write(tmp_path / "rows.csv", ["text", "price"], rows))
    assert "causalLM" in spec["model"]
    assert '# Not read: price.\n# Perhaps a label: the column "price" holds numbers or dates in a spelling' in text


@pytest.mark.parametrize("kind", ["tableRegressor", "tableClassifier", "textRegressor"])
def test_points_that_seem_to_separate_thousands_are_told(tmp_path: Path, kind: str) -> None:
    rows = [[f"a text of some words {n}", f"{n}.250" if n % 6 else str(900 + n), "ab"[n % 2]] for n in range(60)]
    data = write(tmp_path / "rows.csv", ["text", "sales", "shape"], rows)
    _, text = proposal(tmp_path, data, "--kind", kind, "--label", "shape" if kind == "tableClassifier" else "sales")
    said = (
        r'# column "sales": points seem to separate thousands, as in (?P<n>\d+)\.250, but are read as decimal points: '
    )
    assert re.search(said + r"if it is (?P=n)250, write it so\n", text)


@pytest.mark.parametrize("cell", ["0.250", "1.25", "1250", "1e3"])
def test_points_of_decimals_are_not_told(tmp_path: Path, cell: str) -> None:
    rows = [[f"{1 + n}.250" if n % 5 else n, cell if n == 7 else f"{n}.250", "ab"[n % 2]] for n in range(1, 60)]
    _, text = proposal(tmp_path, write(tmp_path / "rows.csv", ["area", "size", "label"], rows))
    assert 'column "area": points seem' in text
    assert 'column "size": points seem' not in text


def test_flags_among_other_columns_are_no_labels(tmp_path: Path) -> None:
    header = ["age", "plan", "visits", "active", "ticket", "left"]
    rows = [[n % 41, "pqr"[n % 3], n * 7 % 31, n % 2, f"a text of some words {n}", n // 2 % 2] for n in range(90)]
    data = write(tmp_path / "rows.csv", header, rows)
    spec, text = proposal(tmp_path, data)
    assert spec["dataset"]["label"] == "left"
    assert "# `--kind tableClassifier` also learns from age, plan, visits, active.\n" in text


def test_columns_of_times_are_not_texts(tmp_path: Path) -> None:
    rows = [[f"2026-01-{1 + n % 28:02} 12:00:{n % 60:02}", n % 7, "ab"[n % 2]] for n in range(60)]
    spec, text = proposal(tmp_path, write(tmp_path / "rows.csv", ["time", "amount", "label"], rows))
    assert spec["model"] == {"tableClassifier": {"tabm": {}}}
    assert "# 1 column of dates: time\n" in text


def test_the_likeliest_name_of_a_label_wins(tmp_path: Path) -> None:
    rows = [[n % 7, "pqr"[n % 3], "ab"[n % 2]] for n in range(60)]
    spec, _ = proposal(tmp_path, write(tmp_path / "rows.csv", ["y", "category", "label"], rows))
    assert spec["dataset"]["label"] == "label"


def test_files_of_a_split_are_sets_of_rows(tmp_path: Path) -> None:
    folder = tmp_path / "houses"
    folder.mkdir()
    rows = [[n, n % 9, "ab"[n % 2], n * 7 % 100] for n in range(90)]
    header = ["Id", "rooms", "shape", "price"]
    write(folder / "train.csv", header, rows)
    write(folder / "val.csv", header, rows[:20])
    write(folder / "test.csv", header[:3], (row[:3] for row in rows))
    spec, text = proposal(tmp_path, folder)
    assert spec["dataset"]["train"] == {"uri": str(folder / "train.csv")}
    assert spec["dataset"]["validation"]["uri"] == str(folder / "val.csv")
    assert "test" not in spec["dataset"]
    assert f"# Not read, because it has no labels: {folder}/test.csv.\n" in text
    assert text.startswith("# train 90 rows, validation 20 rows\n")
    write(folder / "test.csv", header, rows)
    assert proposal(tmp_path, folder)[0]["dataset"]["test"]["uri"] == str(folder / "test.csv")


def test_a_label_of_few_numbers_is_a_class_unless_told_otherwise(tmp_path: Path) -> None:
    file = write(tmp_path / "rows.csv", ["size", "label"], ([CHANCE.random(), n % 5] for n in range(60)))
    assert proposal(tmp_path, file)[0]["model"] == {"tableClassifier": {"tabm": {}}}
    assert proposal(tmp_path, file, "--kind", "tableRegressor")[0]["model"] == {"tableRegressor": {"tabm": {}}}


def test_rows_that_cannot_be_used_are_dropped_and_named(tmp_path: Path) -> None:
    rows: list[list[Any]] = [[CHANCE.random(), "ab"[number % 2]] for number in range(60)]
    rows[7], rows[9] = ["high", "a"], [1.0, "only one"]
    spec, text = proposal(tmp_path, write(tmp_path / "rows.csv", ["size", "label"], rows))
    assert spec["dataset"]["onBadRows"] == "drop"
    assert 'row 8: "high"' in text
    assert '(class "only one" has one row)' in text


def test_texts(tmp_path: Path) -> None:
    spec, text = proposal(tmp_path, write_texts(tmp_path) / "train.csv")
    assert spec["model"] == {"textClassifier": {"encoder": {}}}
    assert (spec["dataset"]["text"], spec["dataset"]["label"]) == (["title", "body"], "label")
    spec, text = proposal(tmp_path, tmp_path / "train.csv", "--kind", "causalLM")
    assert spec["model"] == {"causalLM": {"decoder": {}}}
    assert "GUESSED: a language model learns the texts" in text
    assert spec["training"]["batchSize"] == 2


def test_a_text_among_numbers_and_categories_is_one_way_of_two(tmp_path: Path) -> None:
    words = ["red", "old", "bicycle", "with", "new", "wheels"]
    header = ["id", "offer", "price", "city", "label"]
    rows = [
        [number, " ".join(CHANCE.choices(words, k=6)), number / 7, CHANCE.choice("AB"), CHANCE.choice("xy")]
        for number in range(60)
    ]
    data = write(tmp_path / "offers.csv", header, rows)
    spec, text = proposal(tmp_path, data)
    assert spec["model"] == {"textClassifier": {"encoder": {}}}
    assert "# `--kind tableClassifier` also learns from price, city.\n" in text
    other, _ = proposal(tmp_path, data, "--kind", "tableClassifier")
    assert other["model"] == {"tableClassifier": {"tabm": {}, "text": {"encoder": {}}}}
    assert other["dataset"]["columns"] == {"offer": "text"}


@pytest.mark.parametrize(("kind", "label"), [("tableClassifier", "label"), ("tableRegressor", "price")])
def test_texts_alone_are_for_models_of_texts(tmp_path: Path, kind: str, label: str) -> None:
    words = ["red", "old", "bicycle", "with", "new", "wheels"]
    rows = [
        [n, " ".join(CHANCE.choices(words, k=6)), CHANCE.choice("xy") if label == "label" else n / 7] for n in range(60)
    ]
    data = write(tmp_path / "offers.csv", ["id", "offer", label], rows)
    done = init(data, "--kind", kind, "--label", label)
    only = "beside the label, only texts can be learned from (offer), which textClassifier and textRegressor learn"
    assert f"{kind}: {only}" in str(done.exception)
    with pytest.raises(DataError) as caught:
        fit(
            TrainJobSpec.model_validate(
                {"model": {kind: {"tabm": {}}}, "dataset": {"train": {"uri": str(data)}, "label": label}}
            )
        )
    assert "texts: most rows have a value of their own; textClassifier and textRegressor learn only from texts" in str(
        caught.value
    )


def test_numbers_of_texts(tmp_path: Path) -> None:
    words = ["red", "old", "bicycle", "with", "new", "wheels"]
    rows = [[" ".join(CHANCE.choices(words, k=6)), number / 7, number % 5] for number in range(60)]
    data = write(tmp_path / "offers.csv", ["offer", "price", "stars"], rows)
    spec, text = proposal(tmp_path, data, "--label", "price")
    assert spec["model"] == {"textRegressor": {"encoder": {}}}
    assert (spec["dataset"]["text"], spec["dataset"]["label"]) == (["offer"], "price")
    assert "# Not read: stars.\n# `--kind tableRegressor` also learns from stars.\n" in text
    assert "textClassifier" in proposal(tmp_path, data, "--label", "stars")[0]["model"]
    assert "textRegressor" in proposal(tmp_path, data, "--label", "stars", "--kind", "textRegressor")[0]["model"]


@pytest.mark.filterwarnings("ignore::trainjob.errors.Notice")
def test_images(tmp_path: Path) -> None:
    spec, text = proposal(tmp_path, write_digits(tmp_path / "digits"))
    assert spec["model"] == {"imageClassifier": {"cnn": {}}}
    assert "# train 576 rows, validation 144 rows, test 181 rows\n" in text
    Image.new("L", (40, 30)).save(tmp_path / "digits/train/digit-0/large.png")
    spec, text = proposal(tmp_path, tmp_path / "digits")
    assert spec["model"]["imageClassifier"]["size"] == {"height": 16, "width": 16}
    assert "2 different sizes" in text
    fit(load_trainjob(tmp_path / "proposed.yaml", [f"spec.dataset.train.uri={tmp_path}/digits/train"]).spec)


def test_numbers_of_images(tmp_path: Path) -> None:
    (tmp_path / "dials").mkdir()
    for number in range(60):
        Image.new("L", (20, 20), number).save(tmp_path / f"dials/{number}.png")
    rows = ([f"{number}.png", number / 7, "ab"[number % 2]] for number in range(60))
    data = write(tmp_path / "dials/metadata.csv", ["file_name", "angle", "maker"], rows)
    spec, text = proposal(tmp_path, data)
    assert spec["model"] == {"imageClassifier": {"cnn": {}}}
    assert "label: maker  # GUESSED: the only column with few different values\n" in text
    few = write(tmp_path / "dials/few.csv", ["file_name", "angle"], ([f"{n}.png", n % 9] for n in range(60)))
    spec, _ = proposal(tmp_path, few, "--kind", "imageRegressor")
    assert (spec["model"], spec["dataset"]["label"]) == ({"imageRegressor": {"cnn": {}}}, "angle")
    spec, text = proposal(tmp_path, data, "--kind", "imageRegressor")
    assert "label: angle  # GUESSED: the only column with many different values\n" in text
    assert proposal(tmp_path, data, "--label", "angle")[0]["model"] == {"imageRegressor": {"cnn": {}}}
    assert proposal(tmp_path, data, "--label", "maker")[0]["model"] == {"imageClassifier": {"cnn": {}}}


def test_conversations_and_pairs(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "good day"}]
    chats = tmp_path / "chats.jsonl"
    chats.write_text("\n".join(json.dumps({"id": number, "messages": messages}) for number in range(30)))
    spec, text = proposal(tmp_path, chats)
    assert text.startswith("# Not tried on the rows, because the pretrained model is not fetched here.\n")
    assert spec["dataset"]["messages"] == "messages"
    assert spec["model"]["causalLM"]["lora"] == {}
    pairs = ([f"How much is {n}?", f"It is {n} in all"] for n in range(30))
    spec, text = proposal(tmp_path, write(tmp_path / "pairs.csv", ["question", "answer"], pairs))
    assert (spec["dataset"]["prompt"], spec["dataset"]["completion"]) == ("question", "answer")
    assert "such as the answer that fits a question, in place of writing texts: --kind textEmbedder." in text
    spec, _ = proposal(tmp_path, tmp_path / "pairs.csv", "--kind", "textEmbedder")
    assert (spec["dataset"]["text"], spec["dataset"]["textPair"]) == (["question"], ["answer"])


def test_odd_names_stay_in_their_places(tmp_path: Path) -> None:
    rows = ([CHANCE.random(), CHANCE.choice(["a", "b"])] for _ in range(60))
    data = write(tmp_path / "Röws: 1 #2.csv", ["size\n# x", "yes"], rows)
    spec, text = proposal(tmp_path, data, "--label", "yes")
    assert spec["dataset"] == {"train": {"uri": str(data)}, "label": "yes"}
    assert text.count("\n#") == 2


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        ("", [], "is empty: not even a header"),
        ("a,b\n", [], "rows.csv has no rows"),
        ("a,label\n1,x\n2,y\n", ["--label", "lable"], "did you mean label?"),
        (
            "a,label\n1,x\n2,y\n",
            ["--kind", "svm"],
            "must be one of textClassifier, textRegressor, tokenClassifier,",
        ),
        ("a,b\n1,x\n1,y\n", ["--kind", "tableRegressor"], "the column with the number to predict is not clear"),
        ("a,b\n0.1,x\n0.2,y\n", ["--kind", "tableRegressor", "--label", "b"], '"b" does not hold numbers'),
        ("a,b\n0.1,x\n0.2,y\n", ["--kind", "tableClassifier", "--label", "a"], '"a" has its own value in most rows'),
        ("a,label\n1,x\n2,y\n", ["--kind", "imageClassifier"], "none of the columns looks like images or their paths"),
    ],
)
def test_data_that_fits_no_model_is_refused(tmp_path: Path, content: str, arguments: list[str], message: str) -> None:
    (tmp_path / "rows.csv").write_text(content)
    done = init(tmp_path / "rows.csv", *arguments)
    assert done.exit_code == 1
    assert message in str(done.exception)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    data = customers(tmp_path)
    for output, message in [(data, "exists: --force replaces it"), (tmp_path, "it is a folder")]:
        done = init(data, "--label", "churned", "-o", output)
        assert done.exit_code == 1
        assert message in str(done.exception)
    assert data.read_text().startswith("id,age")


def test_columns_of_flags_and_lists_are_several_labels(tmp_path: Path) -> None:
    texts = [f"the text of row {number}" for number in range(40)]
    flags = [
        [text, number % 2, int(number % 3 == 0), "yes" if number % 5 else "no"] for number, text in enumerate(texts)
    ]
    spec, text = proposal(tmp_path, write(tmp_path / "flags.csv", ["body", "a", "b", "c"], flags))
    assert list(spec["model"]) == ["textClassifier"]
    assert spec["dataset"]["labels"] == ["a", "b", "c"]
    assert "labels: [a, b, c]  # GUESSED: the columns of 0 and 1, one for each label" in text
    assert "# several labels a row, 1.6 on average" in text
    lists = tmp_path / "lists.jsonl"
    rows = ({"text": text, "tags": ["a", "b"][: number % 3]} for number, text in enumerate(texts))
    lists.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert proposal(tmp_path, lists)[0]["dataset"]["label"] == "tags"
    spec, _ = proposal(tmp_path, tmp_path / "flags.csv", "--label", "c", "--label", "a")
    assert spec["dataset"]["labels"] == ["c", "a"]
    done = init(tmp_path / "flags.csv", "--label", "c", "--label", "a", "--kind", "tableClassifier")
    assert "it predicts one label a row, and --label names 2" in str(done.exception)


def test_several_columns_of_numbers_are_predicted_together(tmp_path: Path) -> None:
    rows = [[f"text of row {number}", number % 7, number / 10, f"{number / 7:.3f}"] for number in range(40)]
    file = write(tmp_path / "numbers.csv", ["body", "steps", "weight", "height"], rows)
    named = ("--label", "weight", "--label", "height")
    spec, _ = proposal(tmp_path, file, *named)
    assert list(spec["model"]) == ["textRegressor"]
    assert (spec["dataset"]["text"], spec["dataset"]["labels"]) == (["body"], ["weight", "height"])
    spec, _ = proposal(tmp_path, file, *named, "--kind", "tableRegressor")
    assert spec["dataset"]["labels"] == ["weight", "height"]
    done = init(file, *named, "--kind", "textClassifier")
    assert "weight, height: other values than 0 and 1" in str(done.exception)
    done = init(file, "--label", "weight", "--label", "body", "--kind", "tableRegressor")
    assert '"body" does not hold numbers' in str(done.exception)


def test_choices_and_separated_labels_are_several_labels(tmp_path: Path) -> None:
    """As Label Studio writes them, where a single choice is plain text, and as tables of several tags a row."""
    chosen = [["a"], ["a", "b"], ["b", "c d"]] * 20
    choices = tmp_path / "export.json"
    rows = [
        {"text": f"the text of row {n}", "id": n, "topic": each[0] if len(each) == 1 else {"choices": each}}
        for n, each in enumerate(chosen)
    ]
    choices.write_text(json.dumps(rows))
    spec, text = proposal(tmp_path, choices)
    assert spec["model"] == {"textClassifier": {"encoder": {}}}
    assert "label: topic  # GUESSED: the only column of lists\n" in text
    for written in ("|".join, json.dumps):
        table = ([f"the text of row {n}", written(each)] for n, each in enumerate(chosen))
        spec, text = proposal(tmp_path, write(tmp_path / "rows.csv", ["body", "tags"], table))
        assert (spec["dataset"]["text"], spec["dataset"]["label"]) == (["body"], "tags")
        assert "3 labels; training rows of each: a (32), b (32), c d (16)" in text


def test_rows_that_prodigy_rejects_are_left_out_and_told(tmp_path: Path) -> None:
    rows = [
        {"text": f"Ada in Oslo {n}", "spans": [{"start": 0, "end": 3, "label": "person"}], "answer": answer}
        for n, answer in enumerate(["accept", "reject", "ignore"] * 20)
    ]
    file = tmp_path / "export.jsonl"
    file.write_text("\n".join(json.dumps(row | {"_input_hash": 1, "_task_hash": 2}) for row in rows))
    spec, text = proposal(tmp_path, file)
    assert list(spec["model"]) == ["tokenClassifier"]
    assert spec["dataset"]["onBadRows"] == "drop"
    assert "# 40 (67%) of the training rows were dropped" in text
    assert 'the answer in Prodigy is "reject"' in text
    file.write_text("\n".join(map(json.dumps, rows)))
    spec, text = proposal(tmp_path, file)
    assert "onBadRows" not in spec["dataset"]
    assert 'The column "answer" says ignore and reject in some rows, as Prodigy writes' in text


def test_tasks_of_label_studio(tmp_path: Path) -> None:
    def result(name: str, kind: str, **value: Any) -> dict[str, Any]:
        return {"value": value, "id": "a", "from_name": name, "to_name": "text", "type": kind}

    def proposed(*results: dict[str, Any]) -> dict[str, Any]:
        tasks = [
            {
                "id": n,
                "annotations": [{"id": n, "result": [results[n % len(results)]]}],
                "data": {"text": f"Ada {n} in Oslo"},
            }
            for n in range(40)
        ]
        file = tmp_path / "project-1.json"
        file.write_text(json.dumps(tasks))
        return proposal(tmp_path, file)[0]

    spec = proposed(result("tone", "choices", choices=["good"]), result("tone", "choices", choices=["bad"]))
    assert list(spec["model"]) == ["textClassifier"]
    assert (spec["dataset"]["text"], spec["dataset"]["label"]) == (["text"], "tone")
    spec = proposed(result("tone", "choices", choices=["a"]), result("tone", "choices", choices=["b", "c"]))
    assert spec["dataset"]["label"] == "tone"
    spec = proposed(result("names", "labels", start=0, end=3, text="Ada", labels=["person"]))
    assert list(spec["model"]) == ["tokenClassifier"]
    assert spec["dataset"]["label"] == "names"
    spec = proposed(*(result("price", "number", number=cents / 7) for cents in range(30)))
    assert list(spec["model"]) == ["textRegressor"]
    assert spec["dataset"]["label"] == "price"


def test_columns_of_conll_under_a_name_that_init_is_advised_to_give(tmp_path: Path) -> None:
    data = tmp_path / "eng.train"
    sentences = (f"Ada{n} NNP I-NP I-PER\nsmiled VBD I-VP O\n. . O O\n\n" for n in range(40))
    data.write_text("-DOCSTART- -X- O O\n\n" + "".join(sentences))
    done = init(data)
    assert "rename it to end in .csv, .tsv, .jsonl, .json, .parquet or .conll" in str(done.exception)
    spec, _ = proposal(tmp_path, data.rename(tmp_path / "eng.train.conll"))
    assert spec["model"] == {"tokenClassifier": {"encoder": {}}}
    assert (spec["dataset"]["text"], spec["dataset"]["label"]) == (["tokens"], "tags")


def test_exports_that_cannot_be_read_say_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "export.json"
    file.write_text(json.dumps([["Ada in Oslo", {"entities": [[0, 3, "person"]]}]]))
    assert "write spaCy's pairs as" in str(init(file).exception)
    file = tmp_path / "tags.conll"
    file.write_text("Ada person\nin O\nOslo city\n")
    assert "E- or S- and a type: person, city; write I- before each" in str(init(file).exception)


def test_pairs_of_texts(tmp_path: Path) -> None:
    rows = [[f"how much is offer {n}", f"what does offer {n} cost", "yn"[n % 2], n / 7] for n in range(60)]
    data = write(tmp_path / "rows.csv", ["question1", "question2", "label", "score"], rows)
    pair = {"text": ["question1"], "textPair": ["question2"]}
    for arguments, kind in ([], "textClassifier"), (["--label", "score"], "textRegressor"):
        spec, text = proposal(tmp_path, data, *arguments)
        assert list(spec["model"]) == [kind]
        assert {name: spec["dataset"].get(name) for name in pair} == pair
        assert "textPair: [question2]  # GUESSED: read as a pair with the text" in text
    spec, text = proposal(tmp_path, data, "--kind", "textEmbedder")
    assert spec["model"] == {"textEmbedder": {"encoder": {}}}
    assert {name: spec["dataset"].get(name) for name in pair} == pair
    assert spec["dataset"]["label"] == "score"
    assert "label: score  # GUESSED: how similar both texts are" in text
    assert "# Not read: label.\n" in text
    triplets = write(tmp_path / "triplets.csv", ["anchor", "positive", "negative"], (row[:2] + row[:1] for row in rows))
    spec, text = proposal(tmp_path, triplets)
    assert (spec["dataset"]["text"], spec["dataset"]["textPair"]) == (["anchor"], ["positive"])
    assert spec["dataset"]["textNegative"] == ["negative"]
    assert "Not read" not in text
    done = init(tmp_path / "rows.csv", "--kind", "textEmbedder", "--label", "label")
    assert '"label" does not hold numbers' in str(done.exception)


def test_an_embedder_of_texts_with_classes_is_proposed_where_it_is_asked_for(tmp_path: Path) -> None:
    rows = [[f"the text of row {n}", f"kind {n % 6}", n] for n in range(60)]
    data = write(tmp_path / "rows.csv", ["body", "topic", "id"], rows)
    assert list(proposal(tmp_path, data, "--label", "topic")[0]["model"]) == ["textClassifier"]
    for arguments in (["--label", "topic"], []):
        spec, text = proposal(tmp_path, data, "--kind", "textEmbedder", *arguments)
        assert spec["model"] == {"textEmbedder": {"encoder": {}}}
        assert (spec["dataset"]["text"], spec["dataset"]["label"]) == (["body"], "topic")
        assert "textPair" not in spec["dataset"]
        assert "# Not read: id.\n" in text
    assert "6 classes; training rows of each: kind 0 (" in text


def texts_and_classes(rows: int) -> list[list[str]]:
    return [[f"{CHANCE.choice(['good', 'bad'])} text {number} of many", "ab"[number % 2]] for number in range(rows)]


@pytest.mark.parametrize(
    ("first", "others"),
    [
        (["a text of some words", "a"], texts_and_classes(60)),
        (["5.1", "a"], [[f"{CHANCE.random():.1f}", "ab"[number % 2]] for number in range(60)]),
        (["3", "8", "a"], [[number % 7, CHANCE.randrange(9), "ab"[number % 2]] for number in range(60)]),
    ],
    ids=["a class", "a fraction", "whole numbers"],
)
def test_a_first_line_that_looks_like_a_row_is_told(tmp_path: Path, first: list[str], others: list[list[Any]]) -> None:
    data = write(tmp_path / "rows.csv", first, others)
    with pytest.warns(Notice, match=r"rows\.csv: the first line looks like a row"):
        _, text = proposal(tmp_path, data)
    told = f"the first line looks like a row, not like the names of the columns ({', '.join(first)})"
    assert f"{told}: if it is a row, add a line with names above it.\n" in text


@pytest.mark.parametrize(
    "names",
    [["0", "1", "label"], ["2019", "2021", "label"], ["", "0", "label"], ["x", "y", "label"], ["1e3", "a", "label"]],
    ids=["counted", "years", "unnamed", "words", "letters"],
)
def test_names_that_are_numbers_may_be_names(names: list[str]) -> None:
    cells = [["abc"[number % 3], str(1 - number % 2), "ab"[number % 2]] for number in range(9)]
    if names[0] != "1e3":
        cells = [[str(number), *others] for number, (_, *others) in enumerate(cells)]
    assert doubt_about_header([names, *cells]) is None


def test_a_header_twice_is_perhaps_none(tmp_path: Path) -> None:
    data = write(tmp_path / "rows.csv", ["0", "0", "0.5"], [[number % 2, 1, CHANCE.random()] for number in range(9)])
    with pytest.warns(Notice, match="the first line looks like a row"):
        done = init(data)
    assert str(done.exception) == f'{data} has 2 columns "0": rename all but one'


def test_rows_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    latin = tmp_path / "latin.csv"
    latin.write_bytes(b"text,label\n" + "café au lait,a\nthé,b\n".encode("latin-1"))
    assert 'column "text" is not UTF-8 text (save the file in UTF-8): ' in str(init(latin).exception)
    latin.write_bytes("café,label\n1,b\n".encode("latin-1"))
    assert str(init(latin).exception) == (
        f"{latin}: the names of the columns are not UTF-8 text (caf\ufffd, label): save the file in UTF-8"
    )
    quote = tmp_path / "quote.csv"
    quote.write_text('text,label\na b c,a\n"d e f,b\ng h i,a\nj k l,b\n')
    assert "row 2: a value begins with a quote that is not closed" in str(init(quote).exception)
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"id": 1}\n{"id": 2\n{"id": 3}\n')
    said = str(init(broken).exception)
    assert said.startswith(f"{broken}: 1 row cannot be used\n  {broken}, line 2: not JSON: ")
    assert "\nNo kind of model fits the other rows:\n  " in said


def test_a_column_that_is_ignored_because_it_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Rows that hold more than ASCII in such a column would else be missing from what its type is found by."""
    rows = [f"{number};{'AB'[number % 2]};{('höher', 'tief')[number % 3 // 2]}\n" for number in range(60)]
    data = tmp_path / "rows.csv"
    data.write_bytes(("age;city;segment\n" + "".join(rows)).encode("cp1252"))
    _, text = proposal(tmp_path, data)
    said = '# Cannot be read: 40 rows: column "segment" is not UTF-8 text (save the file in UTF-8): '
    assert f"{said}{data}, row 1: byte 0xf6 at position 1; " in text


@pytest.mark.parametrize("title", ["Survey 2024;;;\nas of May;;;\n;;;\n", "Survey 2024\n\n"])
def test_a_title_above_the_names_of_the_columns_is_told(tmp_path: Path, title: str) -> None:
    data = tmp_path / "rows.csv"
    rows = [f"{CHANCE.randrange(90)};{'AB'[number % 2]};{number % 7};x\n" for number in range(60)]
    data.write_text(f"{title}age;city;visits;segment\n{''.join(rows)}")
    with pytest.warns(Notice, match="the names of the columns") as told:
        assert init(data).exception
    assert str(told[0].message).startswith(
        f"{data}: the first line looks like a title (Survey 2024): if it is one, delete all lines above the one with "
        "the names of the columns (age, city, visits, segment)"
    )


@pytest.mark.parametrize(
    "content",
    [
        'text\n"Doe, Jane"\n"Roe, Max"\n"Poe, Ann"\n',
        ",text\n0,a\n1,b\n2,c\n",
        "price;size;label\n1,5;2,5;a\n1,5;2,5;b\n1,5;2,5;c\n",
        "text\nred, old\nblue\nnew, green, big\n",
    ],
    ids=["a column of names", "pandas", "decimal commas", "commas in texts"],
)
def test_names_of_columns_are_no_titles(content: str) -> None:
    lines = list(csv.reader(content.splitlines(), delimiter=";" if ";" in content else ","))
    assert title_above_header(lines) is None


def test_a_column_without_a_name_is_left_out_of_texts(tmp_path: Path) -> None:
    rows = [[number, *row] for number, row in enumerate(texts_and_classes(60))]
    spec, text = proposal(tmp_path, write(tmp_path / "rows.csv", ["", "text", "label"], rows))
    assert spec["dataset"]["text"] == ["text"]
    assert f"# 1 column has no name: to use such a column, give it one in {tmp_path}/rows.csv.\n" in text
    with pytest.warns(Notice, match="1 column has no name"):
        done = init(write(tmp_path / "rows.csv", ["", "label"], texts_and_classes(60)))
    assert "tableClassifier: there is no column but label\n" in str(done.exception)
    job = tmp_path / "job.yaml"
    job.write_text(text.replace("text: [text]", "text: [words]"))
    done = CliRunner().invoke(app, ["validate", "--data", str(job)])
    assert 'has no column "words"; it has a column without a name, label' in str(done.exception)
