"""Labels that are numbers, lists or alike."""

import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_specs import some_rows, text_spec, write_csv, write_jsonl

from trainjob.data import Fitted, fit
from trainjob.data.read.label_lists import canonical
from trainjob.data.read.rows import RowLocation, Rows, refuse
from trainjob.errors import DataError
from trainjob.kinds.targets.class_notes import label_notes
from trainjob.kinds.targets.one_class import OneClass

TEXTS = [row["text"] for row in some_rows(12)]


def write_labels(path: Path, labels: pa.Array) -> Path:
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({"text": TEXTS[: len(labels)], "label": labels}), path)
    return path


def classes(fitted: Fitted) -> list[str]:
    return fitted.preprocessor.target.classes


@pytest.mark.parametrize(
    "labels",
    [
        pa.array([Decimal(0), Decimal(1), Decimal("1.5")] * 4, pa.decimal128(38, 9)),
        pa.array([Decimal(0), Decimal(1), Decimal("1.5")] * 4, pa.decimal256(60, 40)),
        pa.array([-0.0, 1.0, 1.5, 0.0, 1.0, 1.5] * 2),
        pa.array(["0E-9", "1.0", "1.5", "-0.0", "1", "1.5"] * 2),
    ],
    ids=["decimals", "long decimals", "floats", "texts"],
)
def test_numbers_are_the_same_classes_in_every_type(labels: pa.Array, tmp_path: Path) -> None:
    assert classes(fit(text_spec(write_labels(tmp_path / "rows.parquet", labels)))) == ["0", "1", "1.5"]


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_numbers_are_the_same_classes_in_every_format(ending: str, tmp_path: Path) -> None:
    rows = [{"text": text, "label": [0, 1.0, -0.0, 1][index % 4]} for index, text in enumerate(TEXTS)]
    write = write_csv if ending == "csv" else write_jsonl
    assert classes(fit(text_spec(write(tmp_path / f"rows.{ending}", rows)))) == ["0", "1"]


@pytest.mark.parametrize("kind", ["parquet", "half", "jsonl"])
def test_nan_is_a_missing_label(kind: str, tmp_path: Path) -> None:
    labels = [0.0, 1.0, 0.0, 1.0, float("nan"), 0.0] * 2
    if kind == "jsonl":
        path = write_jsonl(
            tmp_path / "a.jsonl", [{"text": TEXTS[row], "label": each} for row, each in enumerate(labels)]
        )
    else:
        path = write_labels(tmp_path / "a.parquet", pa.array(labels, pa.float16() if kind == "half" else pa.float64()))
    with pytest.raises(DataError, match=r'2 rows: the label \(column "label"\) is empty: .* 5; .* 11\n'):
        fit(text_spec(path))


@pytest.mark.parametrize("label", ["1.10", "007", "1e5", "1.5", "-1", "0x0", "00", "-", "v1.0", "1.0.0", "٣.0"])
def test_other_labels_stay(label: str) -> None:
    assert canonical(label) == label


def test_classes_of_earlier_versions_are_found() -> None:
    def indices(labels: list[str], known: list[str]) -> list[int]:
        rows = Rows(pa.table({"label": labels}), lambda index: RowLocation("it", number=index + 1))
        return OneClass(known, []).read(rows, "label", refuse)[1].tolist()

    assert indices(["0", "0E-9", "1", "1.000"], ["0E-9", "1.0"]) == [0, 0, 1, 1]
    assert indices(["1", "1.0"], ["1", "1.0"]) == [0, 1]


def test_lists_and_json_are_told() -> None:
    names = ['{"choices": ["sport", "sky"]}', "['a', 'b']", "(c)", "[d", "e"]
    [note] = label_notes(names, [1200, 3, 1, 1, 1])
    assert note == (
        '2 of 5 classes look like lists or JSON: \'{"choices": ["sport", "sky"]}\' (1,200 rows), '
        "\"['a', 'b']\" (3 rows). "
        "Each one is treated as a separate class: give each row one plain label"
    )


def test_names_that_differ_in_case_or_blanks_are_told() -> None:
    [note] = label_notes(["SPORT", "New York", "new  york", "sky", "sport"], [1, 2, 3, 4, 5])
    assert note == (
        "classes that differ only in case, blanks or invisible characters are different classes: "
        '"SPORT" (1 row) beside "sport" (5 rows); "New York" (2 rows) beside "new  york" (3 rows)'
    )


def test_names_that_differ_in_what_is_not_seen_are_told() -> None:
    [note] = label_notes(["spam", "spam\0", "\u200bspam", "\ufeffspam"], [1, 2, 3, 4])
    assert note.endswith(r'"spam" (1 row) beside "spam\x00" (2 rows) beside "\u200bspam" (3 rows) and 1 more')


def test_missing_values_of_databases_and_spreadsheets_are_told() -> None:
    assert label_notes(["a", "\\N", "#REF!"], [1, 1, 7]) == [
        'a class is called "\\N" (1 row), "#REF!" (7 rows): if it stands for a missing label, drop its rows'
    ]


def test_the_hubs_number_of_no_label_is_told_and_negative_scores_are_not() -> None:
    [note] = label_notes(["-1", "0", "1", "2"], [7, 1, 1, 1])
    assert note.startswith('a class is called "-1" (7 rows)')
    assert label_notes(["-1", "0", "1"], [1, 1, 1]) == label_notes(["-1", "-2", "0", "1", "2"], [1] * 5) == []


@pytest.mark.parametrize("separator", ["|", ";", "#", ", "])
def test_several_labels_in_one_are_told(separator: str) -> None:
    names = ["Action", "Comedy", f"Action{separator}Comedy", f"Action{separator}War", f"Comedy{separator}War"]
    assert label_notes(names, [1] * 5) == [
        f'3 of 5 classes look like several labels in one: "{names[2]}" (1 row), "{names[3]}" (1 row), "{names[4]}" '
        "(1 row). Each is a class of its own: if rows of texts or images have several labels, write lists such as a|b"
    ]


def test_names_with_separators_are_no_combinations() -> None:
    names = ["Rome, NY", "Troy, NY", "Doe, Jane", "Doe, Max", "Roe, Jane", "Roe, Max", "C#", "F#", "|", "a|"]
    assert label_notes(names, [1] * 10) == []


def test_missing_values_are_told() -> None:
    assert label_notes(["a", "b", "nan"], [1, 1, 7]) == [
        'a class is called "nan" (7 rows): if it stands for a missing label, drop its rows'
    ]


def test_many_odd_names_are_cut_short() -> None:
    [note] = label_notes([f"[{number}, {'9' * 99}]" for number in range(1000)], [1] * 1000)
    assert "1,000 of 1,000 classes" in note
    assert "and 997 more" in note
    assert len(note) < 500


def test_the_first_pass_tells_of_odd_labels(tmp_path: Path) -> None:
    labels = pa.array(["SPORT", "sport", "none"] * 4)
    profile = fit(text_spec(write_labels(tmp_path / "rows.parquet", labels))).profile
    assert profile is not None
    assert [note.partition(":")[0] for note in profile.notes] == [
        "classes that differ only in case, blanks or invisible characters are different classes",
        'a class is called "none" (3 rows)',
    ]


@pytest.mark.parametrize("folder", ["", "year=2026/"])
def test_the_first_pass_tells_the_hubs_names_of_numbers(folder: str, tmp_path: Path) -> None:
    file = write_labels(tmp_path / folder / "rows.parquet", pa.array([0, 1, 2, 3] * 3))
    assert notes_of(tmp_path) == []
    features = {"label": {"names": ["World", "Sports", "Tech", "Art"], "_type": "ClassLabel"}}
    written = pq.ParquetFile(file).read()
    pq.write_table(written.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})}), file)
    assert notes_of(tmp_path) == [
        'the classes are the numbers in "label", for which the files have names: 0 is "World", 1 is "Sports", 2 is '
        '"Tech" and 1 more'
    ]


def notes_of(uri: Path) -> list[str]:
    profile = fit(text_spec(uri)).profile
    assert profile is not None
    return profile.notes
