"""Exports of Label Studio and Prodigy as these tools write them: what becomes a label, and what never does."""

import json
from pathlib import Path
from typing import Any

import pytest

from trainjob.api import Source, TrainJobSpec
from trainjob.data import Fitted, fit
from trainjob.data.read.source import parts
from trainjob.errors import DataError
from trainjob.kinds.targets.number import OneNumber
from trainjob.kinds.targets.one_class import OneClass
from trainjob.kinds.targets.several_labels import SeveralLabels
from trainjob.kinds.token_classifier.target import SpanTarget

ENCODER = {"encoder": {"vocabularySize": 300, "layers": 1, "heads": 1, "hiddenSize": 8}, "maxLength": 16}


def annotation(*results: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "id": 7,
        "completed_by": 1,
        "result": list(results),
        "was_cancelled": False,
        "ground_truth": False,
        "lead_time": 3.2,
        "result_count": len(results),
        **fields,
    }


def task(number: int, *annotations: dict[str, Any], **data: Any) -> dict[str, Any]:
    """A task of Label Studio's full export."""
    return {
        "id": number,
        "annotations": list(annotations),
        "drafts": [],
        "predictions": [],
        "data": {"text": f"one two {number}", **data},
        "meta": {},
        "total_annotations": len(annotations),
        "file_upload": "rows.csv",
    }


def choice(*names: str) -> dict[str, Any]:
    value = {"choices": list(names)}
    return {"value": value, "id": "a", "from_name": "topic", "to_name": "text", "type": "choices", "origin": "manual"}


def span(start: int, end: int, kind: str) -> dict[str, Any]:
    value = {"start": start, "end": end, "text": "one two"[start:end], "labels": [kind]}
    return {"value": value, "id": f"s{start}", "from_name": "label", "to_name": "text", "type": "labels"}


def rating(stars: int) -> dict[str, Any]:
    return {"value": {"rating": stars}, "id": "r", "from_name": "stars", "to_name": "text", "type": "rating"}


def written(folder: Path, rows: list[dict[str, Any]]) -> Path:
    file = folder / "export.json"
    file.write_text(json.dumps(rows))
    return file


def fitted(file: Path, kind: str, label: str, **dataset: Any) -> Fitted:
    model = {kind: ENCODER}
    source = {"train": {"uri": str(file)}, "text": ["text"], "label": label}
    return fit(TrainJobSpec.model_validate({"model": model, "dataset": source | dataset}))


def spans_read(file: Path) -> list[Any]:
    found = parts(Source(uri=str(file)), None, nested=["text", "label", "spans"])
    return [row for part in found for rows in part.read(["text", "label"]) for row in rows.table["label"].to_pylist()]


def test_choices_of_label_studio_are_classes(tmp_path: Path) -> None:
    rows = [task(number, annotation(choice("ab"[number % 2]))) for number in range(20)]
    target = fitted(written(tmp_path, rows), "textClassifier", "topic").preprocessor.target
    assert isinstance(target, OneClass)
    assert target.classes == ["a", "b"]


def test_several_choices_of_label_studio_are_several_labels(tmp_path: Path) -> None:
    chosen = [["a"], ["a", "b"], ["b"], ["c", "b"]]
    rows = [task(number, annotation(choice(*chosen[number % 4]))) for number in range(40)]
    target = fitted(written(tmp_path, rows), "textClassifier", "topic").preprocessor.target
    assert isinstance(target, SeveralLabels)
    assert target.names == ["a", "b", "c"]


@pytest.mark.parametrize("kind", ["textRegressor", "textClassifier"])
def test_ratings_of_label_studio_are_numbers(kind: str, tmp_path: Path) -> None:
    rows = [task(number, annotation(rating(1 + number % 5), span(0, 3, "A"))) for number in range(40)]
    found = fitted(written(tmp_path, rows), kind, "stars").preprocessor.target
    if isinstance(found, OneNumber):
        assert (found.quantiles[0], found.quantiles[-1]) == (1, 5)
    else:
        assert isinstance(found, OneClass)
        assert found.classes == ["1", "2", "3", "4", "5"]


def test_ratings_of_json_min_are_numbers(tmp_path: Path) -> None:
    rows = [
        {"text": f"row {n}", "id": n, "stars": [{"rating": 1 + n % 5}], "annotator": 1, "annotation_id": n}
        for n in range(40)
    ]
    target = fitted(written(tmp_path, rows), "textRegressor", "stars").preprocessor.target
    assert isinstance(target, OneNumber)
    assert target.quantiles[-1] == 5


def test_a_row_of_json_min_without_a_span_is_a_text_without_spans(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"text": f"one two {n}", "id": n, "annotator": 1, "annotation_id": n} for n in range(42)
    ]
    for row in rows[2:]:
        row["label"] = [{"start": 0, "end": 3, "text": "one", "labels": ["A"]}]
    rows[1]["annotation_id"] = None
    file = written(tmp_path, rows)
    with pytest.raises(DataError, match="item 2: the task has no annotation in Label Studio: its labels do not count"):
        fitted(file, "tokenClassifier", "label")
    assert sum(fitted(file, "tokenClassifier", "label", onBadRows="drop").rows.values()) == 41
    del rows[1]
    assert json.loads(spans_read(written(tmp_path, rows))[0]) == {"result": []}


def test_an_annotation_without_a_span_is_a_text_without_spans(tmp_path: Path) -> None:
    relation = {"from_id": "s0", "to_id": "s4", "type": "relation", "direction": "right"}
    rows = [
        task(0, annotation(span(4, 7, "B"), span(0, 3, "A"), relation)),
        task(1, annotation()),
        *(task(number, annotation(span(0, 3, "A"))) for number in range(2, 40)),
    ]
    file = written(tmp_path, rows)
    target = fitted(file, "tokenClassifier", "label").preprocessor.target
    assert isinstance(target, SpanTarget)
    assert target.types == ["A", "B"]
    assert json.loads(spans_read(file)[1]) == {"result": []}


def test_tasks_of_label_studio_without_one_answer_are_named(tmp_path: Path) -> None:
    rows = [
        *(task(number, annotation(choice("ab"[number % 2]))) for number in range(40)),
        task(40, annotation(choice("a"), was_cancelled=True)),
        task(41),
        task(42, annotation(choice("a")), annotation(choice("a")), annotation(choice("b"))),
        task(43, annotation()),
        task(44, annotation(choice("a")), annotation(choice("b"), was_cancelled=True)),
        task(45, annotation(choice("a"), ground_truth=True), annotation(choice("b"))),
        task(46, annotation(choice("a"), span(0, 3, "A")), annotation(choice("a"))),
    ]
    file = written(tmp_path, rows)
    with pytest.raises(DataError) as error:
        fitted(file, "textClassifier", "topic")
    message = str(error.value)
    for line in (
        "4 of 47 rows cannot be used",
        "item 41: the task was skipped in Label Studio: its labels do not count; drop the row",
        "item 42: the task has no annotation in Label Studio: its labels do not count; drop the row",
        'item 43: annotators answer "topic" differently: 3 annotations, such as "a" and "b"; decide in Label Studio '
        "which is the ground truth, or drop the row",
        'item 44: the label (column "topic") is empty',
    ):
        assert line in message
    kept = fitted(file, "textClassifier", "topic", onBadRows="drop")
    assert sum(kept.rows.values()) == 43


def test_the_order_of_choices_and_spans_is_no_disagreement(tmp_path: Path) -> None:
    one, two = annotation(choice("a", "b")), annotation(choice("b", "a"))
    rows = [task(0, one, two), *(task(n, annotation(choice("c")), annotation(choice("c"))) for n in range(1, 20))]
    rows += [task(n, annotation(choice("a", "b"))) for n in range(20, 40)]
    assert sum(fitted(written(tmp_path, rows), "textClassifier", "topic").rows.values()) == 40


def test_a_control_with_the_name_of_a_column_is_refused(tmp_path: Path) -> None:
    rows = [task(number, annotation(choice("a")), topic="b") for number in range(4)]
    with pytest.raises(DataError, match='item 1: the control "topic" has the name of a column of the data in Label'):
        fitted(written(tmp_path, rows), "textClassifier", "topic", onBadRows="drop")


def test_all_tasks_can_be_answered(tmp_path: Path) -> None:
    """Rows to predict need no answer of an annotator."""
    file = written(tmp_path, [task(0), task(1, annotation(choice("a")), annotation(choice("b")))])
    read = [part.read(["text", "topic"]) for part in parts(Source(uri=str(file)), None, labelled=False)]
    (rows,) = [rows.table.to_pylist() for each in read for rows in each]
    assert rows == [{"text": "one two 0", "topic": None}, {"text": "one two 1", "topic": None}]


def prodigy(number: int, answer: str = "accept", **fields: Any) -> dict[str, Any]:
    """A line of Prodigy's `db-out`."""
    hashes = {"_input_hash": number, "_task_hash": -number, "_is_binary": False, "_view_id": "ner_manual"}
    return {"text": f"one two {number}", "meta": {"source": "x"}, **hashes, **fields, "answer": answer, "_timestamp": 1}


@pytest.mark.parametrize("answer", ["reject", "ignore"])
def test_answers_that_prodigy_does_not_accept_are_named(answer: str, tmp_path: Path) -> None:
    spans = [{"start": 0, "end": 3, "token_start": 0, "token_end": 0, "label": "A"}]
    rows = [prodigy(n, spans=spans if n else []) for n in range(20)] + [prodigy(20, answer, spans=spans)]
    file = tmp_path / "ner.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(DataError, match=f'line 21: the answer in Prodigy is "{answer}": its labels do not count; drop'):
        fitted(file, "tokenClassifier", "spans")
    kept = fitted(file, "tokenClassifier", "spans", onBadRows="drop")
    assert sum(kept.rows.values()) == 20


def test_lines_that_prodigy_accepts_without_spans_have_none(tmp_path: Path) -> None:
    spans = [{"start": 0, "end": 3, "label": "A"}]
    rows = [prodigy(0), prodigy(1, spans=[]), *(prodigy(n, spans=spans) for n in range(2, 20))]
    file = tmp_path / "ner.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    found = fitted(file, "tokenClassifier", "spans")
    assert sum(found.rows.values()) == 20
    assert found.preprocessor.target.sizes() == {"types": 1}


def test_choices_of_prodigy_are_several_labels(tmp_path: Path) -> None:
    options = [{"id": name, "text": name.upper()} for name in "abc"]
    chosen = [["a"], ["a", "b"], [], ["c"]]
    rows = [prodigy(n, options=options, accept=chosen[n % 4], config={"choice_style": "multiple"}) for n in range(40)]
    file = tmp_path / "choice.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    target = fitted(file, "textClassifier", "accept").preprocessor.target
    assert isinstance(target, SeveralLabels)
    assert (target.names, target.without > 0) == (["a", "b", "c"], True)
