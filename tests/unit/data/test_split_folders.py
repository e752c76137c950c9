"""Folders of training rows that hold splits."""

import re
import warnings
from pathlib import Path
from typing import Any

import pytest
from data_specs import image_spec, random_images, some_rows, write_csv, write_images

from trainjob.api import Dataset, Source, TrainJob
from trainjob.data import Fitted, fit
from trainjob.data.read.split_folders import image_splits, table_splits, with_recorded_splits, with_split_folders
from trainjob.driver.check import check_data
from trainjob.driver.run import resolve_split_folders
from trainjob.errors import DataError, Notice
from trainjob.runs.files import FITTED
from trainjob.runs.folder import begin_attempt
from trainjob.storage import Folder


def split_set(folder: Path, *splits: str) -> Path:
    for seed, split in enumerate(splits):
        write_images(folder / split, {name: random_images(6, seed=10 * seed + ord(name)) for name in "ab"})
    (folder / "README.roboflow.txt").write_text("exported")
    return folder


def dataset(uri: Path | str, **others: Any) -> Dataset:
    return Dataset.model_validate({"train": {"uri": str(uri)}} | others)


def resolved(given: Dataset) -> tuple[Dataset, list[str]]:
    """The dataset with its split folders, and the notes about them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found, notes = with_split_folders(given, None)
    assert notes == [str(each.message) for each in caught if issubclass(each.category, Notice)]
    return found, notes


def test_image_folders_of_splits_are_the_sets(tmp_path: Path) -> None:
    root = split_set(tmp_path / "data", "train", "valid", "test")
    found, notes = resolved(dataset(root))
    assert found.train == Source(uri=f"{root}/train")
    assert (found.validation.uri, found.validation.fraction) == (f"{root}/valid", None)
    assert found.test == Source(uri=f"{root}/test")
    assert notes == [f"{root}: train/, valid/ and test/ taken as the train, validation and test rows"]
    fitted = fit(image_spec("", **found.model_dump(by_alias=True, exclude_none=True)))
    assert fitted.preprocessor.target.classes == ["a", "b"]
    assert fitted.rows == {"train": 12, "validation": 12, "test": 12}


@pytest.mark.filterwarnings("ignore::trainjob.errors.Notice")
def test_the_profile_keeps_the_notes_on_folders(tmp_path: Path) -> None:
    root, run = split_set(tmp_path / "data", "train", "valid"), Folder(str(tmp_path / "run"))
    job = TrainJob.model_validate(
        {
            "apiVersion": "trainjob.dev/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": "job"},
            "spec": image_spec(root).model_dump(by_alias=True, exclude_none=True),
        }
    )
    notes = [f"{root}: train/ and valid/ taken as the train and validation rows"]
    found = check_data(job).fitted
    assert found is not None
    assert found.profile is not None
    assert found.profile.folders == notes
    begun, told = resolve_split_folders(job, run, fresh=False)
    assert told == notes
    begin_attempt(run, begun)
    fit(begun.spec, folders=told).save(run / FITTED)
    kept = Fitted.load(run / FITTED).profile
    assert kept is not None
    assert kept.folders == notes
    assert resolve_split_folders(job, run, fresh=False) == (begun, [])
    assert resolve_split_folders(job, run, fresh=True) == (begun, notes)
    assert job.spec.dataset is not None
    spec = job.spec.model_copy(update={"dataset": job.spec.dataset.model_copy(update={"on_bad_rows": "drop"})})
    assert resolve_split_folders(job.model_copy(update={"spec": spec}), run, fresh=False)[1] == notes


def test_validation_is_a_share_where_there_is_no_folder_of_it(tmp_path: Path) -> None:
    found, _ = resolved(dataset(split_set(tmp_path, "Training", "Testing")))
    assert (found.train.uri, found.validation.fraction) == (f"{tmp_path}/Training", 0.2)
    assert found.test == Source(uri=f"{tmp_path}/Testing")


def test_sets_that_the_dataset_names_stay(tmp_path: Path) -> None:
    root, other = split_set(tmp_path / "data", "train", "valid", "test"), {"uri": f"{tmp_path}/other"}
    found, notes = resolved(dataset(root, test=other, validation={"fraction": 0.3}))
    assert found.train.uri == f"{root}/train"
    assert found.test == Source.model_validate(other)
    assert found.validation.fraction == 0.3
    assert notes == [
        f"{root}: train/ taken as the train rows; valid/ and test/ left out, since spec.dataset says otherwise"
    ]
    found, notes = resolved(dataset(root, test={"uri": f"{root}/test"}))
    assert notes == [f"{root}: train/ and valid/ taken as the train and validation rows"]


def test_several_roots(tmp_path: Path) -> None:
    one, two = split_set(tmp_path / "1", "train", "val"), split_set(tmp_path / "2", "train", "test")
    plain = write_images(tmp_path / "3", {"a": random_images(2), "b": random_images(2)})
    given = Dataset.model_validate({"train": {"uris": [str(one), str(two), str(plain)], "format": "images"}})
    found, notes = resolved(given)
    assert found.train.all_uris == [f"{one}/train", f"{two}/train", str(plain)]
    assert (found.validation.uri, found.train.format) == (f"{one}/val", "images")
    assert found.test == Source(uri=f"{two}/test", format="images")
    assert len(notes) == 2


@pytest.mark.parametrize(
    "names",
    [
        ["train/1.png", "bus/1.png", "car/1.png"],
        ["train_station/1.png", "test_tube/1.png"],
        ["cat/train/1.png", "dog/test/1.png"],
        ["train.png", "test/1.png"],
        [],
    ],
)
def test_classes_stay_classes(names: list[str]) -> None:
    assert image_splits(names, "data") == {}


@pytest.mark.parametrize(
    ("names", "folders"),
    [
        (["train/a/1.png"], {"train": "train"}),
        (["train/a/x/1.png", "VAL/a/1.png"], {"train": "train", "validation": "VAL"}),
        (
            ["seg_train/seg_train/a/1.png", "seg_train/seg_train/b/2.png", "seg_test/seg_test/a/1.png"],
            {"train": "seg_train/seg_train", "test": "seg_test/seg_test"},
        ),
    ],
)
def test_names_of_splits(names: list[str], folders: dict[str, str]) -> None:
    assert image_splits(names, "data") == folders


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ["train/a/1.png", "test/a/1.png", "extra/a/1.png"],
            "but there is also extra/. Write `dataset: {train: {uri: data/train}, test: {uri: data/test}}`",
        ),
        (["train/a/1.png", "val/a/1.png", "valid/a/1.png"], "but several of them are the same split"),
        (
            ["valid/a/1.png", "test/a/1.png"],
            "but there is no folder train/. Write `dataset: {train: {uri: data/train}, validation: {uri: data/valid}, "
            "test: ",
        ),
        (
            ["train/1.png", "test/2.png"],
            "data: train/ and test/ must have a folder of images for each class, but data/train/1.png is not in a "
            "class",
        ),
        (["train/a/1.png", "test/a/1.png", "test/2.png"], "data/test/2.png is not in a class folder"),
    ],
)
def test_unclear_splits_of_images_are_refused(names: list[str], message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        image_splits(names, "data")


def test_tables_of_the_test_set_are_not_trained_on(tmp_path: Path) -> None:
    for name in ("train/1.csv", "train/2.csv", "test/1.csv"):
        write_csv(tmp_path / name, some_rows(6))
    found, notes = resolved(dataset(tmp_path, text=["text"], label="label"))
    assert (found.train.uri, found.test) == (f"{tmp_path}/train", Source(uri=f"{tmp_path}/test"))
    assert len(notes) == 1


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["train/1.csv", "test/1.csv", "more/1.csv"], "but there is also more/. Write"),
        (["train/1.csv", "test/1.csv", "all.csv"], "but there is also files in no folder. Write"),
        (
            ["data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet", "data/test-00000.parquet"],
            "Write `dataset: {train: {uri: 'root/data/train*.parquet'}, test: {uri: 'root/data/test-00000.parquet'}}`; "
            "to train on all of them, list them in `uris`",
        ),
        (["train.csv", "test.csv"], "root holds train.csv and test.csv, which look like the splits of a data set"),
    ],
)
def test_unclear_splits_of_tables_are_refused(names: list[str], message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        table_splits(names, "root")


@pytest.mark.parametrize("names", [["train-1.csv", "train-2.csv"], ["2024/test.csv", "2025/rows.csv"], ["a.csv"]])
def test_other_tables_are_training_rows(names: list[str]) -> None:
    assert table_splits(names, "root") == {}


def test_a_run_goes_on_with_the_splits_that_it_began_with(tmp_path: Path) -> None:
    root = split_set(tmp_path, "train", "valid", "test")
    given = dataset(root)
    begun, _ = resolved(given)
    assert with_recorded_splits(given, begun) == begun
    assert with_recorded_splits(given, given) == given
    other = dataset(root, test={"uri": "other"})
    assert with_recorded_splits(other, begun).test == Source(uri="other")
    assert with_recorded_splits(dataset(tmp_path / "elsewhere"), begun) == dataset(tmp_path / "elsewhere")
    assert with_recorded_splits(begun, begun) == begun
