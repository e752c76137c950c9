"""Prepared rows that are written table by table."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from trainjob.data import Examples
from trainjob.launch.row_files import map_rows, save_rows


def table(*rows: list[int], teacher: bool = False, labels: bool = True) -> pa.Table:
    columns = {"values": pa.array(rows, pa.list_(pa.int32()))}
    if labels:
        columns["label"] = pa.array([len(row) for row in rows], pa.int64())
    if teacher:
        columns["teacher"] = pa.array([[0.5, len(row)] for row in rows], pa.list_(pa.float32()))
    return pa.table(columns)


@pytest.mark.parametrize("teacher", [False, True])
@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize(
    "tables", [[[[1, 2], [3]], [[4, 5, 6]]], [[], [[1]], [], [[2, 3], []]], [[[7]]], [[]], [[], []]]
)
def test_the_files_hold_the_rows_of_all_tables(
    tmp_path: Path, tables: list[list[list[int]]], labels: bool, teacher: bool
):
    parts = [table(*rows, teacher=teacher, labels=labels) for rows in tables]
    others = [table([9])]
    save_rows([*(("train", part) for part in parts), ("test", others[0])], tmp_path)
    found = map_rows(tmp_path)
    for name, expected in (("train", Examples.concat(parts)), ("test", Examples.concat(others))):
        for each in fields(expected):
            value, other = getattr(found[name], each.name), getattr(expected, each.name)
            if other is None:
                assert value is None
                continue
            assert value.dtype == other.dtype
            np.testing.assert_array_equal(value, other)
