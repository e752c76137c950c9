"""Preparing sets in Ray Data, on a real Ray with a small object store."""

import logging
import time
from collections import Counter
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
import ray
import torch
from ray.data import Dataset
from ray.data.dataset import MaterializedDataset

from preprocessors import have_equal_labels, labels_of
from trainjob.api import TrainJobSpec
from trainjob.data import Examples, fit, prepare_datasets, prepare_examples, user_errors
from trainjob.data.batches import prepare
from trainjob.data.batches.loaders import read_windows
from trainjob.data.read import chunking as tasks
from trainjob.driver.distillation import soft_labels
from trainjob.errors import DataError, RowError
from trainjob.kinds.function.rows import raw_datasets
from trainjob.launch.dataset_shards import DatasetShards
from trainjob.launch.ray_tasks import RayTasks
from trainjob.models import build, save_model
from trainjob.storage import Folder
from unit.data.data_specs import (
    assert_same_fitted,
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
    write_mnist,
    write_parquet,
)

# Ray warns of settings of its own.
pytestmark = pytest.mark.filterwarnings(r"ignore::DeprecationWarning:ray\.")

STORE_BYTES = 80 * 2**20


@pytest.fixture(scope="module", autouse=True)
def _ray() -> Generator[None]:
    ray.init(
        "local",
        num_cpus=2,
        object_store_memory=STORE_BYTES,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    yield
    ray.shutdown()


def rows_of(dataset: Dataset) -> Examples:
    return Examples.concat(dataset.iter_batches(batch_size=None, batch_format="pyarrow"))


def assert_equal(some: Examples, others: Examples) -> None:
    assert have_equal_labels(some, others)
    assert np.array_equal(some.offsets, others.offsets)
    assert np.array_equal(some.values, others.values)


@pytest.fixture(params=["text", "image", "messages", "completion"])
def spec(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrainJobSpec:
    """Sets that take several tasks each."""
    if request.param == "image":
        monkeypatch.setattr(tasks, "TASK_BYTES", 8000)
        images = {name: random_images(100, seed=seed) for seed, name in enumerate("ab")}
        return image_spec(write_images(tmp_path / "images", images))
    monkeypatch.setattr(tasks, "TASK_BYTES", 4000)
    if request.param == "messages":
        model = {"pretrained": str(save_chat_tokenizer(tmp_path / "model"))}
        for start in (0, 50):
            write_jsonl(tmp_path / "rows" / f"{start}.jsonl", some_chats(100)[start : start + 50])
        test = write_parquet(tmp_path / "test.parquet", some_chats(9))
        return causal_spec(tmp_path / "rows", model, messages="chat", test={"uri": str(test)})
    for start in range(0, 400, 50):
        write_csv(tmp_path / "rows" / f"{start:03d}.csv", some_rows(400)[start : start + 50])
    test = {"uri": str(write_csv(tmp_path / "test.csv", some_rows(9)))}
    if request.param == "completion":
        return causal_spec(tmp_path / "rows", prompt="text", completion="label", test=test)
    return text_spec(tmp_path / "rows", test=test)


@pytest.mark.parametrize("store_share", [prepare.STORE_SHARE, 0])
def test_rows_are_those_in_memory_in_the_same_order(
    spec: TrainJobSpec, store_share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare, "STORE_SHARE", store_share)
    fitted = fit(spec)
    expected = prepare_examples(spec, fitted)
    datasets = prepare_datasets(spec, fitted)
    assert datasets.keys() == expected.keys()
    for name, dataset in datasets.items():
        assert isinstance(dataset, MaterializedDataset) == (store_share > 0)
        for _ in range(2):
            assert_equal(rows_of(dataset), expected[name])


def test_small_sets_are_materialized_before_large_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = text_spec(write_csv(tmp_path / "rows.csv", some_rows(100)))
    fitted = fit(spec)
    monkeypatch.setattr(prepare, "STORE_SHARE", 50 * fitted.preprocessor.input.row_bytes / STORE_BYTES)
    datasets = prepare_datasets(spec, fitted)
    assert isinstance(datasets["validation"], MaterializedDataset)
    assert not isinstance(datasets["train"], MaterializedDataset)


@pytest.mark.parametrize("store_share", [prepare.STORE_SHARE, 0])
def test_a_bad_row_raises_its_own_error(
    store_share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(prepare, "STORE_SHARE", store_share)
    spec = text_spec(write_csv(tmp_path / "rows.csv", some_rows()))
    fitted = fit(spec)
    write_csv(tmp_path / "rows.csv", [*some_rows(), {"text": "x", "label": "new"}])
    with pytest.raises(DataError) as caught, user_errors():
        rows_of(prepare_datasets(spec, fitted)["train"])
    expected = f'{tmp_path}/rows.csv, row 61: the label "new" does not occur in the training rows'
    assert str(caught.value) == f"{expected}; known labels are art, law, war"
    assert type(caught.value) is RowError
    assert caught.value.__cause__ is None
    assert capfd.readouterr() == ("", "")


def test_a_set_larger_than_the_object_store_streams_through_it(tmp_path: Path) -> None:
    images = np.stack(random_images(97, (128, 128)))
    count = 6_000
    numbers = np.arange(count)
    path = write_mnist(tmp_path, images[numbers % 97], numbers % 2)
    validation = write_mnist(tmp_path / "validation", images, numbers[:97] % 2)
    assert path.stat().st_size > STORE_BYTES

    spec = image_spec(path, validation={"uri": str(validation)})
    fitted = fit(spec)
    assert fitted.rows["train"] * fitted.preprocessor.input.row_bytes > STORE_BYTES
    train = prepare_datasets(spec, fitted)["train"]
    assert not isinstance(train, MaterializedDataset)

    row = 0
    for batch in cast(Iterator[pa.Table], train.iter_batches(batch_size=None, batch_format="pyarrow")):
        indices = np.arange(row, row + len(batch))
        assert batch["label"].to_pylist() == (indices % 2).tolist()
        values = batch["values"].combine_chunks().flatten().to_numpy().reshape(-1, 128, 128)
        assert np.array_equal(values, images[indices % 97])
        row += len(batch)
    assert row == count


def test_a_set_to_be_scored_is_shared_out_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice, as in two epochs: the same rows to the same workers, each with its place in the set."""
    monkeypatch.setattr(tasks, "TASK_BYTES", 400)
    monkeypatch.setattr(prepare, "STORE_SHARE", 0)
    for start in range(0, 100, 7):
        write_csv(tmp_path / "rows" / f"{start:03d}.csv", some_rows(100)[start : start + 7])
    spec = text_spec(tmp_path / "rows", validation={"uri": str(tmp_path / "rows")})
    fitted = fit(spec)
    datasets = prepare_datasets(spec, fitted)
    expected = prepare_examples(spec, fitted)["validation"]
    options = ray.data.DataContext.get_current().execution_options
    shares = DatasetShards(["train", "validation"], options).configure(datasets, 3, None, None)

    def read(share: dict[str, ray.data.DataIterator]) -> list[Examples]:
        return [window for _ in range(2) for window in read_windows(share["validation"], 16)]

    with ThreadPoolExecutor(3) as threads:
        windows = list(threads.map(read, shares))
    keys = [np.concatenate([window.rows for window in each if window.rows is not None]) for each in windows]
    for each in keys:
        first, second = np.split(each, 2)
        assert np.array_equal(first, second)
    found = {
        int(key): window.take(np.array([row]))
        for each in windows
        for window in each
        if window.rows is not None
        for row, key in enumerate(window.rows)
    }
    assert sum(map(len, keys)) == 2 * len(found) == 200
    ordered = [found[key] for key in sorted(found)]
    assert np.array_equal(np.concatenate([row.values for row in ordered]), expected.values)
    assert np.array_equal(np.concatenate([labels_of(row) for row in ordered]), labels_of(expected))


def test_readers_may_pause_for_longer_than_ray_data_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses readers as validation does; by default, Ray Data would end the execution after 30 minutes."""
    monkeypatch.setattr(ray.data.DataContext.get_current(), "execution_no_progress_timeout_s", 0.5)
    monkeypatch.setattr(tasks, "TASK_BYTES", 400)
    monkeypatch.setattr(prepare, "STORE_SHARE", 0)
    spec = text_spec(write_csv(tmp_path / "rows.csv", some_rows(200)))
    fitted = fit(spec)
    datasets = prepare_datasets(spec, fitted)
    [share] = DatasetShards(["train"], prepare.data_context().execution_options).configure(datasets, 1, None, None)
    windows = read_windows(share["train"], 1)
    first = next(windows)
    time.sleep(1)
    assert len(first) + sum(map(len, windows)) == fitted.training_rows


def test_the_first_pass_in_tasks_finds_what_it_finds_here(spec: TrainJobSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "TASK_BYTES", 10**9)
    expected = fit(spec)
    monkeypatch.setattr(tasks, "TASK_BYTES", 4000)
    mapper = RayTasks()
    mapper.started.set_result(None)
    assert_same_fitted(fit(spec, mapper), expected)


def test_bad_rows_of_several_tasks_are_told_or_dropped_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "TASK_BYTES", 100)
    for number in range(6):
        rows = [*some_rows(9), *([{"text": "x", "label": ""}] if number in (2, 4) else [])]
        write_csv(tmp_path / "rows" / f"{number}.csv", rows)
    mapper = RayTasks()
    mapper.started.set_result(None)
    with pytest.raises(
        DataError, match=r"2 rows: the label .* is empty: .*/2\.csv, row 10; .*/4\.csv, row 10\n"
    ) as caught:
        fit(text_spec(tmp_path / "rows"), mapper)
    assert type(caught.value) is DataError
    spec = text_spec(tmp_path / "rows", onBadRows="drop")
    fitted = fit(spec, mapper)
    assert sum(fitted.rows.values()) == 54
    datasets = prepare_datasets(spec, fitted)
    assert {name: len(rows_of(dataset)) for name, dataset in datasets.items()} == fitted.rows


def function_spec(uri: Path, **dataset: Any) -> TrainJobSpec:
    return TrainJobSpec.model_validate(
        {"model": {"function": {"name": "module:function"}}, "dataset": {"train": {"uri": str(uri)}} | dataset}
    )


ROWS = [{"x": n, "y": n / 2, "kind": "ab"[n % 2]} for n in range(40)]


def test_a_teacher_labels_the_same_in_ray_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels rows in tasks of a few rows each, in source order, and compares the labels with those of the driver's own
    process."""
    monkeypatch.setattr(tasks, "TASK_BYTES", 1)
    rows, teacher = some_rows(200), tmp_path / "teacher"
    for number in range(4):
        write_csv(tmp_path / "train" / f"{number}.csv", rows[50 * number : 50 * number + 50])
    plain = text_spec(tmp_path / "train").model_dump(by_alias=True, exclude_none=True)
    plain["dataset"]["unlabelled"] = {"uri": str(tmp_path / "train" / "2.csv")}
    plain["training"]["distillation"] = {"teacher": str(teacher)}
    taught = TrainJobSpec.model_validate(plain)
    fitted = fit(taught)
    torch.manual_seed(0)
    save_model(build(taught.model, fitted.preprocessor), fitted.preprocessor, teacher)
    here, there = (
        soft_labels(taught, fitted, Folder(str(tmp_path / name)), on_ray)
        for name, on_ray in (("here", False), ("there", True))
    )
    assert len(list((tmp_path / "there" / "soft-labels").iterdir())) == 5
    in_memory = prepare_examples(taught, fitted, here)["train"]
    streamed = rows_of(prepare_datasets(taught, fitted, there)["train"])
    assert_equal(in_memory, streamed)
    assert in_memory.teacher is not None
    assert streamed.teacher is not None
    np.testing.assert_allclose(streamed.teacher, in_memory.teacher, rtol=1e-4, atol=1e-5)
    assert len(streamed) == fitted.training_rows


@pytest.mark.parametrize("label", ["kind", None])
def test_a_function_gets_columns_as_they_are(label: str | None, tmp_path: Path) -> None:
    for path in (write_csv(tmp_path / "rows.csv", ROWS), write_parquet(tmp_path / "rows.parquet", ROWS)):
        datasets = raw_datasets(function_spec(path, label=label, test={"uri": str(path)}))
        rows = {name: dataset.take_all() for name, dataset in datasets.items()}
        assert {name: len(some) for name, some in rows.items()} == {"train": 32, "validation": 8, "test": 40}
        assert sorted(rows["train"] + rows["validation"], key=lambda row: row["x"]) == ROWS == rows["test"]
        if label is not None:
            assert Counter(row["kind"] for row in rows["validation"]) == {"a": 4, "b": 4}


def test_a_function_may_do_without_a_dataset() -> None:
    assert raw_datasets(TrainJobSpec.model_validate({"model": {"function": {"name": "module:function"}}})) == {}


def test_a_function_gets_images_as_files_and_labels(tmp_path: Path) -> None:
    folder = write_images(tmp_path, {"a": random_images(5), "b": random_images(5, seed=1)})
    rows = [row for dataset in raw_datasets(function_spec(folder)).values() for row in dataset.take_all()]
    files = {(file.parent.name, file.read_bytes()) for file in folder.glob("*/*.png")}
    assert {(row["label"], row["image"]) for row in rows} == files
