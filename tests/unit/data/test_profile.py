"""Statistics of the first pass, and the notes about them."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from data_specs import (
    causal_spec,
    image_spec,
    random_images,
    some_rows,
    text_spec,
    write_csv,
    write_images,
    write_jsonl,
)

from trainjob.api import TrainJobSpec
from trainjob.api.data_profile import ClassSizes, DataProfile, SetProfile
from trainjob.data import Fitted, fit
from trainjob.data.first_pass.fitting import tell_of_data
from trainjob.data.first_pass.profile import Keys, set_profile
from trainjob.errors import Alarm, Notice
from trainjob.storage import Folder


def profile_of(spec: TrainJobSpec) -> DataProfile:
    profile = fit(spec).profile
    assert profile is not None
    return profile


def told(fitted: Fitted) -> list[tuple[type[Warning], str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tell_of_data(fitted)
    return [(each.category, str(each.message)) for each in caught]


def test_repeated_contradictory_and_empty_rows(tmp_path: Path) -> None:
    rows = some_rows(30)
    odd = [rows[0], rows[0], {"text": rows[1]["text"], "label": "war"}, {"text": " ", "label": "art"}]
    held = str(write_csv(tmp_path / "held.csv", [*some_rows(33)[30:], rows[0], rows[4]]))
    spec = text_spec(write_csv(tmp_path / "rows.csv", [*rows, *odd]), validation={"uri": held}, test={"uri": held})
    fitted = fit(spec)
    assert fitted.profile == DataProfile(
        sets={
            "train": SetProfile(rows=34, duplicates=2, contradictions=2, empty=1),
            "validation": SetProfile(rows=5, in_training=2),
            "test": SetProfile(rows=5, in_training=2),
        },
        cut_share=0.0,
        class_sizes=ClassSizes(
            classes=3, rare=0, smallest="law", smallest_rows=10, median_rows=11, largest="art", largest_rows=13
        ),
    )
    fitted.save(Folder(str(tmp_path / "kept")))
    assert Fitted.load(Folder(str(tmp_path / "kept"))).profile == fitted.profile
    ((category, text),) = told(fitted)
    assert category is Notice
    for part in (
        "2 (40%) of the test rows are among the training rows",
        "2 (5.9%) of the training rows have the same input as another row, but another label",
        "2 (5.9%) of the training rows are duplicates",
        "1 (2.9%) of the training rows have no text",
    ):
        assert part in text


def test_a_test_set_out_of_the_training_set_is_an_alarm(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "rows.csv", some_rows(40))
    fitted = fit(text_spec(path, validation={"uri": str(write_csv(tmp_path / "v.csv", some_rows(50)[40:]))}))
    assert told(fitted) == []
    alarm, *rest = told(fit(text_spec(path, test={"uri": str(path)})))
    assert alarm[0] is Alarm
    assert "31 (78%) of the test rows are among the training rows: its scores say nothing about new rows" in alarm[1]
    assert rest == []


def test_classes_of_few_rows_and_texts_that_are_cut(tmp_path: Path) -> None:
    rows = [*some_rows(40, ["a", "b"]), *({"text": f"long {'word ' * 40}{index}", "label": "c"} for index in range(4))]
    spec = text_spec(write_csv(tmp_path / "rows.csv", rows), {"maxLength": 16}, validation={"fraction": 0.25})
    profile = profile_of(spec)
    assert profile.cut_share == pytest.approx(3 / 33)
    assert [remark.text for remark in profile.remarks] == [
        "about 9.1% of the training texts are longer than maxLength and are cut",
        '1 of 3 classes have fewer than 10 training rows; the smallest, "c", has 3',
    ]


def test_equal_images_are_found_by_their_bytes(tmp_path: Path) -> None:
    images = random_images(8)
    folder = write_images(tmp_path / "train", {"a": [*images[:4], images[0]], "b": [*images[4:], images[0]]})
    test = write_images(tmp_path / "test", {"a": [images[1], *random_images(2, seed=5)]})
    spec = image_spec(folder, validation={"uri": str(test)})
    assert profile_of(spec).sets == {
        "train": SetProfile(rows=10, duplicates=1, contradictions=3),
        "validation": SetProfile(rows=3, in_training=1),
    }


def test_language_models_have_no_labels_to_contradict(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", [{"text": f"row {index % 10}"} for index in range(20)])
    held = str(write_jsonl(tmp_path / "held.jsonl", [{"text": "row 3"}, {"text": "new"}]))
    profile = profile_of(causal_spec(path, text=["text"], validation={"uri": held}))
    assert profile.sets == {
        "train": SetProfile(rows=20, duplicates=10),
        "validation": SetProfile(rows=2, in_training=1),
    }
    assert profile.class_sizes is None


def test_a_split_keeps_equal_rows_together(tmp_path: Path) -> None:
    sets = profile_of(text_spec(write_csv(tmp_path / "rows.csv", some_rows(60) * 2))).sets
    assert sets == {
        "train": SetProfile(rows=96, duplicates=48),
        "validation": SetProfile(rows=24, duplicates=12, in_training=0),
    }


def test_counts_beside_a_plain_loop() -> None:
    random = np.random.default_rng(0)
    hashes, labels = random.integers(0, 50, 200).astype(np.uint64), random.integers(0, 3, 200)
    training = np.sort(random.integers(0, 100, 60).astype(np.uint64))
    found = set_profile(Keys(labels, hashes, np.zeros(200, bool)), training)
    pairs = list(zip(hashes.tolist(), labels.tolist(), strict=True))
    assert found.duplicates == 200 - len(set(pairs))
    assert found.contradictions == sum(len({label for h, label in pairs if h == each}) > 1 for each, _ in pairs)
    assert found.in_training == sum(each in set(training.tolist()) for each in hashes.tolist())


def test_several_numbers_a_row_are_one_label() -> None:
    labels = np.array([[0, 1], [0, 1], [1, 1], [1, 0], [0, 0]], np.float32)
    keys = Keys(labels, np.array([7, 7, 7, 8, 9], np.uint64), np.zeros(5, bool))
    found = set_profile(keys, None)
    assert (found.duplicates, found.contradictions) == (1, 3)
