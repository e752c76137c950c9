"""Rows that the workers of a node share in memory."""

import os
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from ranks import run_on
from trainjob.data import Examples
from trainjob.errors import DataError
from trainjob.pretrained.hub import from_cache, is_cached_only
from trainjob.worker.distributed import from_local_rank_0, local_rank_0_first, rank
from trainjob.worker.shared_rows import read_once_per_node

FIELD = "spec.model.textClassifier.pretrained"

TABLES = [
    pa.table({"values": pa.array([row], pa.list_(pa.int32())), "label": [label], "row": [number]})
    for row, label, number in (([0, 1, 2, 3, 4], 1, 0), ([5, 6, 7, 8, 9, 10, 11], 0, 2**40))
]
ROWS = Examples.concat(TABLES)


def _on_nodes_of(size: int) -> None:
    """Places this rank on a node with `size` ranks, as Ray Train would."""
    os.environ["LOCAL_RANK"], os.environ["NODE_RANK"] = str(rank() % size), str(rank() // size)


def _shared(node_size: int, scratch: Path) -> tuple[Examples, int, bool]:
    """The rows, how often this rank has read them, and whether they are mapped."""
    _on_nodes_of(node_size)
    os.environ["TMPDIR"] = str(scratch)
    reads: list[int] = []

    def read() -> list[pa.Table]:
        reads.append(rank())
        return TABLES

    rows = read_once_per_node(read)
    return (
        Examples(*map(np.array, (rows.values, rows.offsets, rows.labels)), rows=rows.rows),
        len(reads),
        isinstance(rows.values, np.memmap),
    )


@pytest.mark.parametrize("node_size", [3, 2, 1])
def test_one_rank_of_each_node_reads(tmp_path: Path, node_size: int):
    results = run_on(3, _shared, node_size, tmp_path)
    assert [reads for _, reads, _ in results] == [int(number % node_size == 0) for number in range(3)]
    for rows, _, is_mapped in results:
        assert is_mapped
        np.testing.assert_array_equal(rows.values, ROWS.values)
        np.testing.assert_array_equal(rows.offsets, ROWS.offsets)
        np.testing.assert_array_equal(rows.labels, ROWS.labels)
        np.testing.assert_array_equal(rows.rows, ROWS.rows)


def _value(node_size: int) -> int:
    _on_nodes_of(node_size)
    return from_local_rank_0(rank())


def test_the_first_rank_of_a_node_speaks_for_it():
    assert run_on(3, _value, 2) == [0, 0, 2]


def _at_work(node_size: int, failing: bool) -> tuple[float, float]:
    """The times at which this rank began and ended the block."""
    _on_nodes_of(node_size)
    times: list[float] = []
    try:
        with local_rank_0_first():
            times.append(time.time())
            time.sleep(0.2)
            times.append(time.time())
            if failing:
                raise ArithmeticError
    except ArithmeticError:
        pass
    return times[0], times[1]


@pytest.mark.parametrize("failing", [False, True])
def test_the_others_begin_when_the_first_of_the_node_has_ended(failing: bool):
    (_, first_end), (second_begin, _), (_, third_end) = run_on(3, _at_work, 2, failing)
    assert second_begin >= max(first_end, third_end)


def test_what_another_has_downloaded_is_not_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with from_cache():
        assert is_cached_only("nobody/nothing", FIELD)
        assert not is_cached_only(str(tmp_path), FIELD)
    with from_cache(False), pytest.raises(DataError, match="nobody/nothing"):
        is_cached_only("nobody/nothing", FIELD)
