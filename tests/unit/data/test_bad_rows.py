"""Rows that cannot be used: told all at once, or dropped from every pass alike."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_specs import (
    causal_spec,
    image_spec,
    random_images,
    save_chat_tokenizer,
    some_chats,
    some_rows,
    text_spec,
    write_csv,
    write_images,
    write_jsonl,
)
from PIL import Image

from trainjob.api import TrainJobSpec
from trainjob.api.data_profile import DataProfile, Dropped, Remark, SetProfile
from trainjob.data import Fitted, check_unchanged, fit, prepare_examples
from trainjob.data.batches.prepare import read_set
from trainjob.data.read.bad_rows import BadRows
from trainjob.data.read.rows import RowLocation
from trainjob.errors import DataError, RowError
from trainjob.storage import Folder

GOOD = some_rows(60)
DROP = {"onBadRows": "drop"}


def refusal(spec: TrainJobSpec) -> str:
    with pytest.raises(DataError) as error:
        fit(spec)
    return str(error.value)


def dropped(fitted: Fitted) -> dict[str, list[tuple[str, int, list[str]]]]:
    assert fitted.profile is not None
    sets = fitted.profile.sets
    return {
        name: [(each.reason, each.rows, [first.rpartition("/")[2] for first in each.first]) for each in found.dropped]
        for name, found in sets.items()
        if found.dropped
    }


def check_passes_agree(spec: TrainJobSpec, fitted: Fitted) -> None:
    """Whether the second pass, and that of baselines, have the rows that the first has counted."""
    examples = prepare_examples(spec, fitted)
    assert {name: len(rows) for name, rows in examples.items()} == {
        name: rows for name, rows in fitted.rows.items() if name in examples
    }
    for name, rows in examples.items():
        assert sum(len(each.table) for each, _ in read_set(spec, fitted, name)) == len(rows)


def test_all_bad_rows_of_all_sets_are_told_at_once(tmp_path: Path) -> None:
    empty = [{"text": f"empty {number}", "label": " "} for number in range(62)]
    train = write_csv(tmp_path / "rows.csv", [*GOOD, *empty, {"text": "alone", "label": "odd"}])
    held = [*GOOD[:3], {"text": "x", "label": "wars"}, {"text": "y", "label": ""}, {"text": "z", "label": "odd"}]
    said = refusal(text_spec(train, test={"uri": str(write_csv(tmp_path / "test.csv", held))}))
    places = f"{train}, row 61; row 62; row 63; row 64; row 65"
    assert said.split("\n") == [
        f"spec.dataset.train ({train}): 63 of 123 rows cannot be used",
        f'  62 rows: the label (column "label") is empty: {places} and 57 more',
        '  class "odd" has one row: too few to set some aside for validation; add rows, drop the class, or give '
        "dataset.validation.uri",
        f"spec.dataset.test ({tmp_path}/test.csv): 2 of 6 rows cannot be used",
        f'  {tmp_path}/test.csv, row 4: the label "wars" does not occur in the training rows; did you mean "war"?',
        f'  {tmp_path}/test.csv, row 5: the label (column "label") is empty: fill it in or drop the row',
        "Correct these rows, or have them left out with `dataset.onBadRows: drop`.",
    ]


def test_bad_rows_are_dropped_from_every_pass(tmp_path: Path) -> None:
    bad = [{"text": "x", "label": ""}, {"text": "alone", "label": "odd"}]
    train = write_csv(tmp_path / "rows.csv", [bad[0], *GOOD, *bad])
    held = [*GOOD[:3], {"text": "z", "label": "odd"}]
    test = write_csv(tmp_path / "test.csv", held)
    spec = text_spec(train, test={"uri": str(test)}, **DROP)
    fitted = fit(spec)
    assert dropped(fitted) == {
        "train": [
            ('the label (column "label") is empty', 2, ["rows.csv, row 1", "rows.csv, row 62"]),
            ("of a class with too few rows that can be used", 1, ['class "odd" has one row']),
        ],
        "test": [
            (
                "the label does not occur in the training rows",
                1,
                ['test.csv, row 4: "odd"'],
            )
        ],
    }
    assert fitted.preprocessor.target.classes == ["art", "law", "war"]
    check_passes_agree(spec, fitted)
    clean = fit(text_spec(write_csv(tmp_path / "clean.csv", GOOD)))
    assert (fitted.rows["train"], fitted.split) == (clean.rows["train"], clean.split)
    fitted.save(Folder(str(tmp_path / "kept")))
    kept = Fitted.load(Folder(str(tmp_path / "kept")))
    check_passes_agree(spec, kept)
    check_unchanged(spec, kept)
    os.utime(train, (1, 1))  # the rows are read again
    check_unchanged(spec, kept)
    write_csv(train, GOOD)
    with pytest.raises(DataError, match="the data has changed since the run began"):
        check_unchanged(spec, kept)


@pytest.mark.parametrize("ending", ["png", "jpg"])
@pytest.mark.parametrize("size", [None, (8, 8)])
def test_damaged_images_are_found_by_the_first_pass(size: tuple[int, int] | None, ending: str, tmp_path: Path) -> None:
    arrays = {"a": random_images(12, (64, 64, 3)), "b": random_images(12, (64, 64, 3), seed=1)}
    folder = write_images(tmp_path / "images", arrays, ending)
    for name in ("a/3", "b/7"):
        victim = folder / f"{name}.{ending}"
        victim.write_bytes(victim.read_bytes()[: victim.stat().st_size // 2])
    (folder / "a" / f"0.{ending}").write_bytes(b"")
    said = refusal(image_spec(folder, size))
    assert "3 of 24 rows cannot be used\n  3 rows: not a valid image file: " in said
    assert all(f"{name}.{ending}: " in said for name in ("a/0", "a/3", "b/7"))
    spec = image_spec(folder, size, **DROP)
    fitted = fit(spec)
    assert sum(fitted.rows.values()) == 21
    check_passes_agree(spec, fitted)


def test_images_of_another_size_beside_damaged_ones(tmp_path: Path) -> None:
    folder = write_images(tmp_path, {name: random_images(12, seed=seed) for seed, name in enumerate("ab")})
    for number in (1, 2):
        Image.fromarray(random_images(1, (9, 9))[0]).save(folder / "b" / f"{number}.png")
    (folder / "a" / "5.png").write_bytes(b"")
    said = refusal(image_spec(folder))
    assert "3 of 24 rows cannot be used" in said
    assert "2 rows: not of the size of the others, 5 x 6 pixels (set `size` of the model in spec.model to" in said
    assert "a/5.png is not a valid image file" in said
    spec = image_spec(folder, **DROP)
    fitted = fit(spec)
    assert sum(fitted.rows.values()) == 21
    check_passes_agree(spec, fitted)


def test_lines_that_are_no_rows(tmp_path: Path) -> None:
    lines = [json.dumps(row) for row in GOOD]
    lines[3] = '{"text": "cut off", "lab'
    lines[9] = '["a", "list"]'
    lines[11] = '{"text": ["x"], "label": "art"}'
    path = tmp_path / "rows.jsonl"
    path.write_bytes("\n".join(lines).encode() + b'\n{"text": "\xff", "label": "art"}\n')
    said = refusal(text_spec(path))
    assert "4 of 61 rows cannot be used" in said
    assert "rows.jsonl, line 4: not JSON: " in said
    assert "line 10: must be a JSON object" in said
    assert "line 61: not UTF-8 text: byte 0xff" in said
    spec = text_spec(path, **DROP)
    fitted = fit(spec)
    assert sum(fitted.rows.values()) == 57
    check_passes_agree(spec, fitted)
    places = [str(rows.where(index)) for rows, _ in read_set(spec, fitted, "train") for index in range(len(rows.table))]
    assert not {f"{path}, line {number}" for number in (4, 10, 12, 61)} & set(places)


@pytest.mark.parametrize("first", ["", "sep=,\n"])
def test_lines_of_another_width_and_other_bytes(first: str, tmp_path: Path) -> None:
    lines = [f"{row['text']},{row['label']}".encode() for row in GOOD]
    lines[3], lines[7], lines[9] = b"a,b,c", b"caf\xe9,art", b"alone"
    lines.insert(5, b'"two\nlines",art')
    path = tmp_path / "rows.csv"
    path.write_bytes(first.encode() + b"text,label\n" + b"\n".join(lines) + b"\n")
    said = refusal(text_spec(path))
    assert "3 of 61 rows cannot be used" in said
    width = "the row does not have 2 values, as the header has"
    assert f"2 rows: {width}: {path}, row 4: 3 values; row 11: 1 value" in said
    assert f'{path}, row 9: column "text" is not UTF-8 text: byte 0xe9 at position 3' in said
    spec = text_spec(path, **DROP)
    fitted = fit(spec)
    check_passes_agree(spec, fitted)
    found = {
        str(rows.where(index)): str(rows.table["text"][index])
        for name in ("train", "validation")
        for rows, _ in read_set(spec, fitted, name)
        for index in range(len(rows.table))
    }
    assert len(found) == 58
    assert found[f"{path}, row 6"] == "two\nlines"
    assert found[f"{path}, row 61"] == GOOD[59]["text"]


def test_a_line_of_another_width_and_other_bytes(tmp_path: Path) -> None:
    """Arrow does not report such rows."""
    path = tmp_path / "rows.csv"
    path.write_bytes(b"text,label\na,b\n\xe9,b,c\n")
    assert refusal(text_spec(path, **DROP)).startswith(f"{path} is not a valid CSV file: CSV parse error: Row #3")


def test_half_of_many_rows(tmp_path: Path) -> None:
    rows = some_rows(20_000)
    for row in rows[::2]:
        row["label"] = ""
    path = write_csv(tmp_path / "rows.csv", rows)
    assert "10,000 of 20,000 rows cannot be used" in refusal(text_spec(path))
    fitted = fit(text_spec(path, **DROP))
    assert fitted.profile is not None
    assert sum(fitted.rows.values()) == 10_000
    (severe,) = (remark.text for remark in fitted.profile.remarks if remark.is_severe)
    assert severe.startswith("10,000 (50%) of the training rows were dropped")


def test_dropped_unlabelled_rows_say_nothing_of_scores() -> None:
    dropped = [Dropped(reason="broken", rows=3, first=["a.csv, row 1"])]
    profile = DataProfile(sets={"unlabelled": SetProfile(rows=7, dropped=dropped, source_rows=10)})
    assert profile.remarks == [
        Remark("dropped 3 rows of unlabelled: broken (a.csv, row 1 and 2 more)"),
        Remark("3 (30%) of the unlabelled rows were dropped: correct them, so that the model learns from them, too"),
    ]


def test_consecutive_rows_of_one_file_name_it_once() -> None:
    bad = BadRows()
    for location in (RowLocation("a.csv", "row", 3), RowLocation("a.csv", "row", 9), RowLocation("b.csv", "row", 9)):
        bad.add(RowError(f"{location}: empty", location, "empty", '"x"'))
    for location in (RowLocation("1.png"), RowLocation("2.png")):
        bad.add(RowError(f"{location}: damaged", location, "damaged"))
    assert bad.lines() == [
        '3 rows: empty: a.csv, row 3: "x"; row 9: "x"; b.csv, row 9: "x"',
        "2 rows: damaged: 1.png; 2.png",
    ]


def test_places_are_kept_without_secrets() -> None:
    bad = BadRows()
    place = "https://host/rows.csv?X-Amz-Signature=secret&part=1, row 3"
    bad.add(RowError(f"{place}: the label is empty", place, "the label is empty", '"x"'))
    assert "host/rows.csv" in bad.dropped()[0].first[0]
    assert "secret" not in repr(bad)


@pytest.mark.parametrize("kept", [[], [row for row in GOOD if row["label"] == "art"]])
def test_dropping_is_not_offered_where_too_few_rows_are_left(kept: list[dict[str, Any]], tmp_path: Path) -> None:
    bad = [{"text": f"row {number}", "label": ""} for number in range(7)]
    said = refusal(text_spec(write_csv(tmp_path / "rows.csv", [*kept, *bad])))
    assert "7 rows: the label (column" in said
    assert said.endswith("\nCorrect these rows.")


def test_nothing_left(tmp_path: Path) -> None:
    bad: list[dict[str, Any]] = [{"text": f"row {number}", "label": ""} for number in range(7)]
    spec = text_spec(write_csv(tmp_path / "rows.csv", bad), **DROP)
    said = refusal(spec)
    assert "7 rows cannot be used" in said
    assert f"{tmp_path}/rows.csv has no rows that can be used" in said
    assert "onBadRows" not in said
    train = write_csv(tmp_path / "good.csv", GOOD)
    held = str(write_csv(tmp_path / "test.csv", [{"text": "x", "label": "peace"}]))
    assert "test.csv has no rows that can be used" in refusal(text_spec(train, test={"uri": held}, **DROP))
    one = [*[row for row in GOOD if row["label"] == "art"], *bad]
    said = refusal(text_spec(write_csv(tmp_path / "one.csv", one), **DROP))
    assert 'every row has the label "art"' in said
    assert "7 rows: the label" in said


@pytest.mark.parametrize("own", [False, True])
def test_a_class_that_would_be_dropped_is_an_error(own: bool, tmp_path: Path) -> None:
    arrays = {name: random_images(12, seed=seed) for seed, name in enumerate("abc")}
    folder = write_images(tmp_path / "train", arrays)
    for path in sorted((folder / "b").iterdir())[own:]:
        path.write_bytes(b"")
    if own:
        sorted((folder / "b").iterdir())[0].write_bytes(b"")
    held: dict[str, Any] = (
        {"validation": {"uri": str(write_images(tmp_path / "held", {"a": random_images(2, seed=9)}))}} if own else {}
    )
    said = refusal(image_spec(folder, **held, **DROP))
    assert 'class "b" has 0 of 12 rows that can be used: the whole class would be dropped' in said


def test_a_dropped_row_that_makes_its_class_too_small(tmp_path: Path) -> None:
    folder = write_images(tmp_path, {name: random_images(9, seed=seed) for seed, name in enumerate("ab")})
    write_images(folder, {"few": random_images(2, seed=7)})
    (folder / "few" / "0.png").write_bytes(b"")
    assert 'class "few" has 1 of 2 rows that can be used: too few to set some aside' in refusal(image_spec(folder))
    spec = image_spec(folder, **DROP)
    fitted = fit(spec)
    assert fitted.preprocessor.target.classes == ["a", "b"]
    assert [rows for _, rows, _ in dropped(fitted)["train"]] == [1, 1]
    check_passes_agree(spec, fitted)


def test_conversations_of_which_nothing_can_be_learned(tmp_path: Path) -> None:
    rows = some_chats(40)
    rows[2]["chat"] = rows[2]["chat"][:1]
    rows[5]["chat"] = [{"role": "user"}]
    rows[8]["chat"] = [*rows[8]["chat"][:1], {"role": "assistant", "content": "word " * 100}]
    rows[9]["chat"] = "no list"
    path = write_jsonl(tmp_path / "rows.jsonl", rows)
    model = {"pretrained": str(save_chat_tokenizer(tmp_path / "model"))}
    said = refusal(causal_spec(path, model, messages="chat"))
    assert "4 of 40 rows cannot be used" in said
    assert 'rows.jsonl, line 3: no message has the role "assistant"' in said
    assert "rows.jsonl, line 9: the conversation has " in said
    spec = causal_spec(path, model, messages="chat", **DROP)
    fitted = fit(spec)
    assert sum(fitted.rows.values()) == 36
    whole = fit(
        causal_spec(
            write_jsonl(tmp_path / "sound.jsonl", [rows[i] for i in range(40) if i not in (2, 5, 8, 9)]),
            model,
            messages="chat",
        )
    )
    prepared = prepare_examples(spec, fitted)
    assert np.concatenate([rows.values for rows in prepared.values()]).size > 0
    assert whole.rows["train"] + whole.rows["validation"] == 36


@pytest.mark.parametrize("bad", [[{"role": "user", "content": None}], [], None])
def test_equal_bad_conversations_take_no_place_in_the_split(bad: Any, tmp_path: Path) -> None:
    rows = [{"chat": bad}] * 30 + some_chats(40)
    model = {"pretrained": str(save_chat_tokenizer(tmp_path / "model"))}
    every = causal_spec(write_jsonl(tmp_path / "rows.jsonl", rows), model, messages="chat", **DROP)
    for seed in range(4):  # equal rows are all on one side, which the seed decides
        spec = every.model_copy(update={"training": every.training.model_copy(update={"seed": seed})})
        fitted = fit(spec)
        assert fitted.rows == {"train": 32, "validation": 8}
        read = {name: sum(len(each.table) for each, _ in read_set(spec, fitted, name)) for name in fitted.rows}
        assert read == fitted.rows


def test_completions_that_leave_too_few_rows(tmp_path: Path) -> None:
    rows = [{"a": f"question {number}", "b": ""} for number in range(9)] + [{"a": "x", "b": "y"}]
    said = refusal(causal_spec(write_jsonl(tmp_path / "rows.jsonl", rows), prompt="a", completion="b", **DROP))
    assert '9 rows: "b" is empty' in said
    assert "has one row: too few to set some aside for validation" in said


def test_completions_that_are_empty_or_too_long(tmp_path: Path) -> None:
    rows = [{"a": f"question {number}", "b": f"answer {number}"} for number in range(40)]
    rows[3]["b"], rows[4]["b"], rows[7]["b"] = "", "0 1 " * 200, "2 3 " * 200
    path = write_jsonl(tmp_path / "rows.jsonl", rows)
    said = refusal(causal_spec(path, prompt="a", completion="b"))
    assert "3 of 40 rows cannot be used" in said
    kind = "prompt and completion have more than the 64 tokens that fit into model.causalLM.maxLength"
    assert f"  2 rows: {kind} (raise it or shorten these rows): {path}, line 5: " in said
    spec = causal_spec(path, prompt="a", completion="b", **DROP)
    fitted = fit(spec)
    assert sum(fitted.rows.values()) == 37
    assert all(len(examples) for examples in prepare_examples(spec, fitted).values())
