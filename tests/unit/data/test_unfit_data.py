"""Data that cannot be fitted, and what is said of it."""

from pathlib import Path

import numpy as np
import pytest
from data_specs import image_spec, random_images, some_rows, text_spec, write_csv, write_images

from trainjob.api import TrainJobSpec
from trainjob.data import fit, prepare_examples
from trainjob.errors import DataError

GOOD = some_rows(30)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([*GOOD, {"text": "x", "label": ""}], r'rows\.csv, row 31: the label \(column "label"\) is empty'),
        ([*GOOD, {"text": "x", "label": "  "}], r"rows\.csv, row 31: the label .* is empty"),
        (
            [{"text": "x", "label": "a"}] * 9,
            r'rows\.csv: every row has the label "a" in column "label"; at least two are needed',
        ),
        ([*GOOD, {"text": "x", "label": "odd"}], r'class "odd" has one row: too few to set some aside'),
        ([*GOOD, *[{"text": "x", "label": "odd"}] * 3], r'class "odd" has 3 rows, all equal'),
        (
            [*GOOD, {"text": "x", "label": "0.001"}],
            r'class "0.001" has one row: .*labels are classes \(text, whole numbers, or true and false\).* a regressor',
        ),
        (
            [*GOOD, *[{"text": f"x{number}", "label": f"0.{number}"} for number in range(1, 9)]],
            r"8 rows: .*\n.*rows\.csv are numbers with fractions: labels are classes .*: spec.model.textRegressor",
        ),
        ([{"text": "x", "tag": "a"}], r'rows\.csv has no column "label"; it has text, tag'),
    ],
)
def test_training_rows_that_cannot_be_used(rows: list[dict[str, str]], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        fit(text_spec(write_csv(tmp_path / "rows.csv", rows)))


def test_columns_that_are_empty_in_every_row(tmp_path: Path) -> None:
    """Also where there are more columns than bits."""
    others = [f"other{number}" for number in range(20)]
    rows = [row | {"note": " ", "title": "", **dict.fromkeys(others, "x")} for row in GOOD]
    spec = text_spec(write_csv(tmp_path / "rows.csv", rows))
    assert spec.dataset is not None

    def reading(*columns: str) -> TrainJobSpec:
        return spec.model_copy(update={"dataset": spec.dataset.model_copy(update={"text": list(columns)})})

    for columns in (["note", "text"], ["note", "text", *others]):
        profile = fit(reading(*columns)).profile
        assert profile is not None
        assert profile.notes == ['column "note" is empty in every row']
    with pytest.raises(DataError, match=r'rows\.csv: column "note" is empty in every row: nothing can be learned$'):
        fit(reading("note"))
    with pytest.raises(DataError, match=r"rows\.csv: columns note, title are empty in every row: nothing can be"):
        fit(reading("note", "title"))


def test_no_rows(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("text,label\n")
    (tmp_path / "empty.jsonl").write_text("")
    for name in ("empty.csv", "empty.jsonl"):
        with pytest.raises(DataError, match=rf"{name} has no rows"):
            fit(text_spec(tmp_path / name))
    good = write_csv(tmp_path / "rows.csv", GOOD)
    with pytest.raises(DataError, match=r"empty\.csv has no rows"):
        fit(text_spec(good, test={"uri": str(tmp_path / "empty.csv")}))


@pytest.mark.parametrize("name", ["validation", "test"])
@pytest.mark.parametrize(
    ("label", "message"),
    [
        (
            "peace",
            r"others\.csv, row 3: the label \"peace\" does not occur in the training rows; known labels are art, law, "
            r"war",
        ),
        ("wars", r"others\.csv, row 3: the label \"wars\" .*; did you mean \"war\"\?"),
        ("", r"others\.csv, row 3: the label .* is empty"),
    ],
)
def test_labels_that_training_does_not_know(name: str, label: str, message: str, tmp_path: Path) -> None:
    others = write_csv(tmp_path / "others.csv", [*GOOD[:2], {"text": "x", "label": label}])
    source = {"uri": str(others)}
    train = write_csv(tmp_path / "rows.csv", GOOD)
    with pytest.raises(DataError, match=message):
        fit(text_spec(train, validation=source) if name == "validation" else text_spec(train, test=source))


def test_a_corrupt_image_is_named(tmp_path: Path) -> None:
    folder = write_images(tmp_path, {"a": random_images(5, (40, 40)), "b": random_images(5, (40, 40), seed=1)})
    spec, victim = image_spec(folder), folder / "b" / "3.png"
    whole = victim.read_bytes()
    for damaged in (b"no image", b"", whole[: len(whole) // 2]):
        victim.write_bytes(damaged)
        with pytest.raises(DataError, match=r"b/3\.png is not a valid image file"):
            prepare_examples(spec, fit(spec))


@pytest.mark.parametrize(
    "content", [b"P6", b"P6\n3 x 255\n", b"P6\n99999999999999 3\n255\n", b"P6\n3 3\n99999999\n", b"P3\n5 6\n255\nx y z"]
)
def test_a_broken_header_is_named(content: bytes, tmp_path: Path) -> None:
    folder = write_images(tmp_path, {"a": random_images(5), "b": random_images(5, seed=1)})
    (folder / "b" / "odd.ppm").write_bytes(content)
    spec = image_spec(folder, validation={"uri": str(folder)})
    with pytest.raises(DataError, match=r"b/odd\.ppm is not a valid image file: (?!.*BytesIO)"):
        prepare_examples(spec, fit(spec))


def test_images_of_several_sizes_need_a_size(tmp_path: Path) -> None:
    folder = write_images(tmp_path / "train", {"a": random_images(5), "b": random_images(5, seed=1)})
    odd = write_images(tmp_path / "test", {"a": random_images(1, (6, 7))})
    spec = image_spec(folder, test={"uri": str(odd)})
    with pytest.raises(
        DataError, match=r"test/a/0\.png is 7 x 6 pixels, others are 5 x 6: resize it, or set `size` of"
    ):
        prepare_examples(spec, fit(spec))
    write_images(folder, {"c": random_images(3, (9, 9))})
    with pytest.raises(DataError, match=r"set `size` of the model in spec.model to resize all"):
        fit(image_spec(folder))


def test_images_that_8_bits_cannot_hold(tmp_path: Path) -> None:
    deep = [image.astype(np.float32) for image in random_images(5)]
    with pytest.raises(DataError, match=r"mode F are not supported; convert to 8 bits"):
        fit(image_spec(write_images(tmp_path, {"a": deep, "b": deep}, "tiff")))


def test_a_source_of_the_wrong_kind(tmp_path: Path) -> None:
    table = write_csv(tmp_path / "rows.csv", GOOD)
    images = write_images(tmp_path / "images", {"a": random_images(2), "b": random_images(2)})
    with pytest.raises(DataError, match=r"images has images, but model\.textClassifier needs csv"):
        fit(text_spec(images))
    with pytest.raises(
        DataError, match=r"rows\.csv: none of the columns looks like images or their paths; it has text"
    ):
        fit(image_spec(table))
