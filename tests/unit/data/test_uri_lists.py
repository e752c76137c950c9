"""Sources that are lists of URIs."""

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from data_specs import (
    assert_same_examples,
    image_spec,
    random_images,
    some_rows,
    text_spec,
    write_csv,
    write_images,
    write_jsonl,
    write_mnist,
    write_parquet,
)

from preprocessors import labels_of
from trainjob.api import Source, TrainJobSpec
from trainjob.data import fit, prepare_examples
from trainjob.data.read.counted_reading import read_all
from trainjob.data.read.source import parts
from trainjob.errors import DataError, Notice

ROWS = some_rows(60)
ENDINGS = {"csv": write_csv, "jsonl": write_jsonl, "parquet": write_parquet}


def sources(*uris: Path | str) -> dict[str, list[str]]:
    return {"uris": [str(uri) for uri in uris]}


def places(*uris: Path | str) -> list[str]:
    """The location that each row of a list reports."""
    found = parts(Source.model_validate(sources(*uris)), None)
    return [rows.where(index) for rows in read_all(found, ["text"]) for index in range(len(rows.table))]


@pytest.mark.parametrize("ending", ENDINGS)
def test_shards_and_a_folder_are_read_as_one_folder_with_all(ending: str, tmp_path: Path) -> None:
    write = ENDINGS[ending]
    for number in range(4):
        shard = ROWS[number * 15 : number * 15 + 15]
        write(tmp_path / "all" / f"{number}.{ending}", shard)
        write(tmp_path / ("then" if number > 1 else "some") / f"{number}.{ending}", shard)
    uris = [tmp_path / "some" / f"0.{ending}", tmp_path / "some" / f"1.{ending}", tmp_path / "then"]
    assert_same_examples(text_spec("", train=sources(*uris)), text_spec(tmp_path / "all"))
    some, whole = sources(*uris), {"uri": str(tmp_path / "all")}
    assert_same_examples(
        text_spec("", train=some, validation=some, test=some),
        text_spec("", train=whole, validation=whole, test=whole),
    )


def test_doubt_about_the_headers_is_told_once(tmp_path: Path) -> None:
    rows = [{"text": str(number), "label": "text"} for number in range(5)]
    uris = [write_csv(tmp_path / f"{number}.csv", [{"text": "text", "label": "label"}, *rows]) for number in range(3)]
    with pytest.warns(Notice, match="looks like a row") as told:
        places(*uris)
    assert [str(each.message).partition(": ")[0] for each in told] == [str(uris[0])]


@pytest.mark.parametrize("uris", [*permutations(["b.csv", "a.csv", "z"])])
def test_the_order_is_that_of_the_names(uris: tuple[str, ...], tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "z/2.csv", "z/1.csv"):
        write_csv(tmp_path / name, ROWS[:1])
    found = places(*(tmp_path / uri for uri in uris))
    assert found == [f"{tmp_path}/{name}, row 1" for name in ("a.csv", "b.csv", "z/1.csv", "z/2.csv")]


def test_the_format_is_told_from_all_files(tmp_path: Path) -> None:
    table, plain = write_csv(tmp_path / "rows.csv", ROWS[:2]), write_csv(tmp_path / "rows", ROWS[2:4])
    assert len(places(table, plain)) == 4
    other = write_jsonl(tmp_path / "rows.jsonl", ROWS)
    message = re.escape(f"{table}, {other} has files in several formats (csv, jsonl): choose one with `format`")
    with pytest.raises(DataError, match=message):
        places(table, other)


def test_what_is_wrong_is_said_of_the_file_or_uri(tmp_path: Path) -> None:
    table, nothing = write_csv(tmp_path / "rows.csv", ROWS), tmp_path / "nothing.csv"
    with pytest.raises(DataError, match=re.escape(f"{nothing}: there is nothing here")):
        places(table, nothing)
    nothing.write_text("text,label\n")
    assert len(places(table, nothing)) == 60
    unlabelled = write_csv(tmp_path / "odd.csv", [{"text": "a", "label": ""}])
    with pytest.raises(DataError, match=re.escape(f"{unlabelled}, row 1")):
        fit(text_spec("", train=sources(table, unlabelled)))
    empty = tmp_path / "empty.csv"
    empty.write_text("text,label\n")
    with pytest.raises(DataError, match=re.escape(f"{empty}, {nothing} has no rows")):
        fit(text_spec("", train=sources(empty, nothing)))


@pytest.mark.parametrize(
    "again",
    [
        lambda file: file.parent,
        lambda file: f"{file.parent}/*.csv",
        lambda file: f"file://{file}",
        lambda file: f"{file.parent}/../{file.parent.name}/{file.name}",
        lambda file: f"{file.parent.parent}/link.csv",
    ],
    ids=["folder", "glob", "address", "path", "link"],
)
def test_a_file_that_is_named_twice_is_refused(again: Callable[[Path], Path | str], tmp_path: Path) -> None:
    file, other = write_csv(tmp_path / "rows" / "a.csv", ROWS), write_csv(tmp_path / "rows" / "b.csv", ROWS)
    (tmp_path / "link.csv").symlink_to(file)
    first, second = sorted([str(file), str(again(file))])
    message = re.escape(f".csv is named twice, by {first} and by {second}: its rows would count twice")
    with pytest.raises(DataError, match=message):
        fit(text_spec("", train=sources(second, first)))
    assert len(places(file, other)) == 120


def test_folders_of_images(tmp_path: Path) -> None:
    for number in range(2):
        images = {name: random_images(10, seed=10 * number + seed) for seed, name in enumerate("ab")}
        write_images(tmp_path / str(number), images)
    spec = image_spec("", train=sources(tmp_path / "0", tmp_path / "1"), validation={"uri": str(tmp_path / "0")})
    assert fit(spec).rows == {"train": 40, "validation": 20}
    assert_same_sets(spec, tmp_path)
    file = next((tmp_path / "1").glob("*/*.png"))
    with pytest.raises(DataError, match=re.escape(f"{file} must be a folder with a folder of images")):
        fit(image_spec("", train=sources(tmp_path / "0", file)))


def test_idx_files(tmp_path: Path) -> None:
    for number in range(2):
        write_mnist(tmp_path / str(number), np.stack(random_images(20, seed=number)), np.arange(20) % 2)
    spec = image_spec("", train=sources(tmp_path / "0", tmp_path / "1"), validation={"uri": str(tmp_path / "0")})
    assert fit(spec).rows == {"train": 40, "validation": 20}
    assert_same_sets(spec, tmp_path)


def assert_same_sets(spec: TrainJobSpec, folder: Path) -> None:
    """Checks that the training rows are those of folder 0 followed by those of folder 1."""
    fitted = fit(spec)
    both = prepare_examples(spec, fitted)["train"]
    of_other_files = replace(fitted, sources={})
    each = [
        prepare_examples(image_spec(folder / name, validation={"uri": str(folder / "0")}), of_other_files)["train"]
        for name in "01"
    ]
    assert np.array_equal(labels_of(both), np.concatenate([labels_of(some) for some in each]))
    assert np.array_equal(both.values, np.concatenate([some.values for some in each]))
