"""Several labels a row: the notations, the rows that cannot be used, and the split."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from preprocessors import labels_of
from trainjob.api import TrainJobSpec
from trainjob.data import Fitted, fit, prepare_examples
from trainjob.data.read.label_lists import labels_in, notation_of
from trainjob.errors import DataError
from trainjob.kinds.targets.one_class import OneClass
from trainjob.kinds.targets.several_labels import SeveralLabels

ENCODER = {"layers": 1, "hiddenSize": 16, "heads": 2, "vocabularySize": 100}


def spec_of(file: Path, loss: str | None = None, **dataset: Any) -> TrainJobSpec:
    labels = {} if "labels" in dataset else {"label": "tags"}
    losses = {} if loss is None else {"loss": {loss: {}}}
    return TrainJobSpec.model_validate(
        {
            "model": {"textClassifier": {"encoder": ENCODER, "maxLength": 16, **losses}},
            "dataset": {"train": {"uri": str(file)}, "text": ["text"], **labels, **dataset},
        }
    )


def several(fitted: Fitted) -> SeveralLabels:
    target = fitted.preprocessor.target
    assert isinstance(target, SeveralLabels)
    return target


def write_jsonl(file: Path, cells: list[Any]) -> Path:
    file.write_text("".join(json.dumps({"text": f"text {n}", "tags": cell}) + "\n" for n, cell in enumerate(cells)))
    return file


def write_csv(file: Path, header: str, lines: list[str]) -> Path:
    file.write_text("\n".join([header, *(f"text {number},{line}" for number, line in enumerate(lines))]) + "\n")
    return file


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ('["a", "b c"]', ["a", "b c"]),
        ("['a', 'b']", ["a", "b"]),
        ("['a' 'b']", ["a", "b"]),  # as NumPy writes an array: Python would read "ab"
        ("{'a'}", ["a"]),
        ("('a', 'b')", ["a", "b"]),
        ("[0 3]", ["0", "3"]),
        ("[1, 2.0]", ["1", "2"]),
        ("[]", []),
        ('{"choices": ["a", "b"]}', ["a", "b"]),
        ('{"a": 1, "b": 0.0, "c": true}', ["a", "c"]),
        ("a|b | c", ["a", "b", "c"]),
        ("[deleted]", ["[deleted]"]),
        ("a, b", ["a, b"]),
    ],
)
def test_notations(cell: str, expected: list[str]) -> None:
    assert labels_in(cell, notation_of(cell)) == expected


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        ([["a"], ["a", "b"], [], ["b"]], ["a", "b"]),
        ([{"cats": 1, "dogs": 0}, {"cats": 1, "dogs": 1}, {"cats": 0, "dogs": 0}], ["cats", "dogs"]),
        (["a|b", "b", "c", "[x]"], ["[x]", "a", "b", "c"]),
        ([{"choices": ["a", "b"]}, "b", "c|d"], ["a", "b", "c|d"]),
        ([[3], [1, 3], [1]], ["1", "3"]),
    ],
    ids=["lists", "cats", "separated", "choices", "numbers"],
)
def test_cells_of_json_lines(cells: list[Any], labels: list[str], tmp_path: Path) -> None:
    assert several(fit(spec_of(write_jsonl(tmp_path / "a.jsonl", 3 * cells)))).names == labels


def test_classes_with_a_bar_stay_classes_where_no_part_occurs_twice(tmp_path: Path) -> None:
    target = fit(spec_of(write_jsonl(tmp_path / "a.jsonl", 3 * ["a|b", "c"]))).preprocessor.target
    assert target.sizes() == {"classes": 2}
    assert target.classes == ["a|b", "c"]


def test_lists_of_one_label_in_every_row_are_classes(tmp_path: Path) -> None:
    train = write_jsonl(tmp_path / "a.jsonl", 5 * [["b"], ["a"], {"a": 1, "b": 0}])
    test = write_jsonl(tmp_path / "b.jsonl", [["a"], "b", ["b"]])
    fitted = fit(spec := spec_of(train, "crossEntropy", test={"uri": str(test)}))
    target = fitted.preprocessor.target
    assert isinstance(target, OneClass)
    assert (target.classes, fitted.rows["train"] + fitted.rows["validation"]) == (["a", "b"], 15)
    assert labels_of(prepare_examples(spec, fitted)["test"]).tolist() == [0, 1, 1]


def test_rows_that_stand_between_classes_and_several_labels_are_told(tmp_path: Path) -> None:
    fitted = fit(spec_of(write_jsonl(tmp_path / "a.jsonl", 15 * [["b"], ["a"], ["a"], []])))
    assert fitted.profile is not None
    assert any("no training row has more than one label, and 1" in note for note in fitted.profile.notes)
    columns = spec_of(write_csv(tmp_path / "b.csv", "text,a,b", 10 * ["1,0", "0,1"]), labels=["a", "b"])
    profile = fit(columns).profile
    assert profile is not None
    assert any("every training row has exactly one label" in note for note in profile.notes)


def test_numbers_of_the_hugging_face_hub_have_their_names(tmp_path: Path) -> None:
    feature = {"feature": {"names": ["cat", "dog", "cow"], "_type": "ClassLabel"}, "_type": "List"}
    metadata = {b"huggingface": json.dumps({"info": {"features": {"tags": feature}}}).encode()}
    columns = {"text": [f"text {n}" for n in range(6)], "tags": pa.array(2 * [[0, 2], [1], []], pa.list_(pa.int64()))}
    parquet.write_table(pa.table(columns).replace_schema_metadata(metadata), tmp_path / "a.parquet")
    assert several(fit(spec_of(tmp_path / "a.parquet"))).names == ["cat", "cow", "dog"]


def test_columns_of_flags(tmp_path: Path) -> None:
    lines = 5 * ["1,true,0", "0,No,1", "1.0,yes, 0", "0,false,0"]
    fitted = fit(spec := spec_of(write_csv(tmp_path / "a.csv", "text,b,a,c", lines), labels=["b", "a", "c"]))
    assert several(fitted).names == ["b", "a", "c"], "in the order of dataset.labels"
    labels = np.concatenate([labels_of(each) for each in prepare_examples(spec, fitted).values()])
    assert labels.sum(axis=0).tolist() == [10, 10, 5]
    assert fitted.rows == {"train": 16, "validation": 4}
    loaded = SeveralLabels.load(several(fitted).save())
    assert loaded == several(fitted)
    assert several(fitted).in_words() == (
        "several labels a row, 1.2 on average; 4 training rows have none. 3 labels; training rows of each: b (8), "
        "a (8), c (4)"
    )


def test_cells_that_are_neither_0_nor_1_are_named_with_their_rows(tmp_path: Path) -> None:
    lines = ["1,0", "2,1", "0,maybe", ",1", "nan,0", "0,1"]
    with pytest.raises(DataError) as caught:
        fit(spec_of(write_csv(tmp_path / "a.csv", "text,a,b", lines), labels=["a", "b"]))
    found = str(caught.value)
    assert "4 of 6 rows cannot be used" in found
    assert 'row 2: the label (column "a") is neither 0 nor 1: "2"; write 0 or 1' in found
    assert 'row 3: the label (column "b") is neither 0 nor 1: "maybe"; write 0 or 1' in found
    assert '2 rows: the label (column "a") is empty' in found
    lines = ["1,0", "0,maybe", "2,1", "0,1"]
    with pytest.raises(DataError) as caught:
        fit(spec_of(write_csv(tmp_path / "a.csv", "text,a,b", lines), labels=["a", "b"]))
    assert re.findall(r"row \d", str(caught.value)) == ["row 2", "row 3"], "in the order of the rows"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["1,0", "0,0", "1,0"], 'no row of 3 has the label "b", so there is nothing to learn: leave it out of dataset'),
        (["1,1", "1,0", "1,0"], 'every row of 3 has the label "a", so there is nothing to learn'),
    ],
)
def test_a_constant_label_is_refused(lines: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        fit(spec_of(write_csv(tmp_path / "a.csv", "text,a,b", lines), labels=["a", "b"]))


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match='has 2 columns "a": rename all but one'):
        fit(spec_of(write_csv(tmp_path / "a.csv", "text,a,a", ["1,0", "0,1"]), labels=["a"]))


def test_a_label_in_the_text_is_refused(tmp_path: Path) -> None:
    file = write_csv(tmp_path / "a.csv", "text,a", ["1", "0"])
    with pytest.raises(DataError, match="must not include the label a: a model that reads the answer learns nothing"):
        fit(spec_of(file, labels=["a"], text=["text", "a"]))


def test_lists_in_half_of_the_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        fit(spec_of(write_jsonl(tmp_path / "a.jsonl", ["a", ["a"], ["b"], "b", "c"])))
    found = str(caught.value).replace(f"{tmp_path}/", "")
    assert 'column "tags" has lists of labels in 2 rows (such as a.jsonl, line 2), and a single label in 3' in found
    assert '(such as a.jsonl, line 1): write each as a list, such as ["a"], or [] for a row without a label' in found


def test_a_softmax_over_lists_is_refused(tmp_path: Path) -> None:
    lists = write_jsonl(tmp_path / "lists.jsonl", [["a"], ["b"], ["a", "b"], ["b"], []])
    with pytest.raises(DataError) as caught:
        fit(spec_of(lists, "crossEntropy"))
    assert str(caught.value) == (
        "spec.model.textClassifier.loss: must not be crossEntropy where rows have several labels, as in column "
        '"tags": a softmax gives each row one class; write `binaryCrossEntropy: {}` or leave loss out'
    )
    assert several(fit(spec_of(lists, "binaryCrossEntropy"))).names == ["a", "b"]
    fit(spec_of(write_jsonl(tmp_path / "classes.jsonl", ["a", "b"] * 3), "crossEntropy"))


def test_lists_that_cannot_be_used_are_named_with_their_rows(tmp_path: Path) -> None:
    cells = [["a"], ["a", "a"], ["a", ""], ["b", None], [["a"]], {"a": 0.5}, None, ["b"], []]
    with pytest.raises(DataError) as caught:
        fit(spec_of(write_jsonl(tmp_path / "a.jsonl", cells)))
    found = str(caught.value)
    assert "6 of 9 rows cannot be used" in found
    for line, problem in [
        (2, 'the label "a" occurs twice'),
        (3, "a label is empty"),
        (4, "null is not the name of a label"),
        (5, '["a"] is not the name of a label'),
        (6, "the values of the labels must be 0 or 1"),
    ]:
        assert f"line {line}: {problem}" in found
    dropping = spec_of(tmp_path / "a.jsonl", onBadRows="drop")
    assert sum(fit(dropping).rows.values()) == 3


def test_separated_labels_with_an_empty_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r'separates labels by "|", but of "a||b", a label is empty'):
        fit(spec_of(write_jsonl(tmp_path / "a.jsonl", ["a|b", "a", "a||b"])))


def test_labels_of_the_validation_rows_that_are_empty_or_new_are_named(tmp_path: Path) -> None:
    train = write_jsonl(tmp_path / "a.jsonl", 3 * [["a"], ["b"], []])
    other = write_jsonl(tmp_path / "b.jsonl", [["a"], ["c", "a"], "b", "a|b", [], None, ""])
    with pytest.raises(DataError) as caught:
        fit(spec_of(train, validation={"uri": str(other)}))
    found = str(caught.value)
    assert "3 of 7 rows cannot be used" in found
    assert '2 rows: the label (column "tags") is empty ([] is a row without a label): ' in found
    assert 'line 2: the labels (column "tags") cannot be used: the label "c" does not occur in the training' in found
    assert "known labels are a, b" in found


def test_empty_labels_of_the_training_rows_beside_lists_are_told_how_to_be_written(tmp_path: Path) -> None:
    for empty, said in ([""], ": fill it in or drop the row; [] is"), (["", None], " ([] is"):
        file = write_jsonl(tmp_path / "a.jsonl", [*(10 * ["a|b", "b", "a|c"]), *empty])
        with pytest.raises(DataError) as caught:
            fit(spec_of(file))
        assert f'the label (column "tags") is empty{said} a row without a label' in str(caught.value)


def test_each_label_has_its_share_of_the_validation_rows(tmp_path: Path) -> None:
    chance = np.random.default_rng(0)
    shares = np.array([0.5, 0.4, 0.2, 0.1, 0.05, 0.03])
    has_label = chance.random((1000, len(shares))) < shares
    cells = [[f"label {index}" for index in np.flatnonzero(row)] for row in has_label]
    fitted = fit(spec := spec_of(write_jsonl(tmp_path / "a.jsonl", cells)))
    examples = prepare_examples(spec, fitted)
    train, validation = (labels_of(examples[name]).sum(axis=0) for name in ("train", "validation"))
    assert fitted.rows["validation"] == pytest.approx(200, abs=5)
    np.testing.assert_allclose(validation / (train + validation), 0.2, atol=0.03)
    assert len({tuple(each) for each in has_label.tolist()}) > len(several(fitted).combinations) > 5


def test_labels_that_look_alike_are_told(tmp_path: Path) -> None:
    fitted = fit(spec_of(write_jsonl(tmp_path / "rows.jsonl", [["sport", "café"], ["Sport", "cafe\u0301"]] * 20)))
    assert fitted.profile is not None
    [note] = fitted.profile.notes
    assert note.startswith("labels that differ only in case, blanks or invisible characters are different labels: ")
    for name in ['"Sport" (', ' beside "sport" (', ' beside "café" (']:
        assert name in note
