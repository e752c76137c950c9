"""The first pass over the rows, in tasks of any size, finds the same."""

import pickle
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_specs import (
    assert_same_fitted,
    image_spec,
    random_images,
    some_rows,
    text_spec,
    write_csv,
    write_images,
)
from ray import cloudpickle

from trainjob.api import TrainJobSpec
from trainjob.data import fit
from trainjob.data.first_pass.sample import Sample
from trainjob.data.read import chunking as tasks
from trainjob.errors import DataError
from trainjob.launch.ray_tasks import RayTasks


def through_pickle(work: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
    """Pickles each item, as for another process."""
    for item in items:
        content = cloudpickle.dumps(work)
        elsewhere = pickle.loads(content)
        yield pickle.loads(pickle.dumps(elsewhere(pickle.loads(pickle.dumps(item)))))


def texts(folder: Path) -> TrainJobSpec:
    for start in range(0, 400, 50):
        write_csv(folder / "rows" / f"{start:03d}.csv", some_rows(400)[start : start + 50])
    others = str(write_csv(folder / "others.csv", some_rows(9)))
    return text_spec(folder / "rows", test={"uri": others})


def images(folder: Path) -> TrainJobSpec:
    return image_spec(write_images(folder / "images", {n: random_images(100, seed=s) for s, n in enumerate("ab")}))


@pytest.mark.parametrize("make", [texts, images])
def test_tasks_of_any_size_find_the_same(
    make: Callable[[Path], TrainJobSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    spec = make(tmp_path)
    expected = fit(spec)
    for size in (1, 4000):
        monkeypatch.setattr(tasks, "TASK_BYTES", size)
        assert_same_fitted(fit(spec, through_pickle), expected)


@pytest.mark.parametrize("share", [1, 7, 100])
def test_a_sample_does_not_depend_on_how_rows_are_shared_out(share: int):
    """Some hashes occur twice, also across tasks."""
    row_hashes = np.random.default_rng(0).integers(0, 300, 500, np.uint64)
    whole, parts = Sample[int](40), Sample[int](40)
    whole.add(row_hashes, lambda row: row)
    for start in range(0, 500, share):
        part = Sample[int](40, parts.floor)
        part.add(row_hashes[start : start + share], lambda index, start=start: start + index)
        parts.merge(part.pruned())
    everything = np.ones(500, bool)
    assert parts.items(everything) == whole.items(everything)
    assert len(whole.items(everything)) == 40


def test_images_of_several_sizes_in_several_tasks_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tasks, "TASK_BYTES", 1)
    monkeypatch.setattr("trainjob.data.read.source.IMAGES_PER_PART", 1)
    folder = write_images(tmp_path, {"a": random_images(3), "b": random_images(3, (9, 9), seed=1)})
    with pytest.raises(DataError, match=r"3 rows: not of the size of .* \(set `size` of the model"):
        fit(image_spec(folder), through_pickle)


def test_a_single_task_needs_no_cluster():
    assert list(RayTasks()(str, [1])) == ["1"]


def test_who_waits_for_a_cluster_learns_that_there_will_be_none():
    mapper = RayTasks()
    with pytest.raises(ArithmeticError), mapper.waiting():
        raise ArithmeticError
    with pytest.raises(ArithmeticError):
        list(mapper(str, [1, 2]))
