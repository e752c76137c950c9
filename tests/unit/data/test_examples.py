import numpy as np
import pyarrow as pa
import pytest
import torch

from preprocessors import labels_of
from trainjob.data import Examples
from trainjob.data.arrays import as_arrow
from trainjob.data.batches.batch import Batch


def table(rows: list[list[int]], kind: pa.DataType) -> pa.Table:
    return pa.table({"values": pa.array(rows, pa.list_(kind)), "label": pa.array(range(len(rows)), pa.int64())})


def as_lists(examples: Examples) -> list[list[int]]:
    return [part.tolist() for part in np.split(examples.values, examples.offsets[1:-1])]


ROWS = [[1, 2, 3], [], [4], [5, 6]]


@pytest.mark.parametrize("kind", [pa.int32(), pa.uint8()])
def test_rows_of_a_table(kind: pa.DataType) -> None:
    examples = Examples.from_table(table(ROWS, kind))
    assert as_lists(examples) == ROWS
    assert examples.values.dtype == kind.to_pandas_dtype()
    assert examples.offsets.dtype == np.int64
    assert examples.lengths.tolist() == [3, 0, 1, 2]
    assert labels_of(examples).tolist() == [0, 1, 2, 3]
    assert labels_of(examples).dtype == np.int64
    assert len(examples) == 4


def test_slices_and_chunks_of_a_table() -> None:
    whole = table(ROWS, pa.int32())
    chunked = pa.concat_tables([whole.slice(1, 2), whole.slice(3), whole.slice(0, 0)])
    assert as_lists(Examples.from_table(chunked)) == ROWS[1:]


def test_rows_of_several_tables() -> None:
    whole = table(ROWS, pa.int32())
    examples = Examples.concat(iter([whole, whole.slice(2)]))
    assert as_lists(examples) == ROWS + ROWS[2:]
    assert labels_of(examples).tolist() == [0, 1, 2, 3, 2, 3]


@pytest.mark.parametrize("indices", [[2, 0, 0, 3], [1], [], [0, 0], [1, 1], [2, 2]])
def test_take(indices: list[int]) -> None:
    taken = Examples.from_table(table(ROWS, pa.int32())).take(np.array(indices, np.int64))
    assert labels_of(taken).tolist() == indices
    assert [taken.values[a:b].tolist() for a, b in zip(taken.offsets, taken.offsets[1:], strict=False)] == [
        ROWS[index] for index in indices
    ]


def test_no_rows() -> None:
    examples = Examples.from_table(table([], pa.uint8()))
    assert len(examples) == 0
    assert examples.values.dtype == np.uint8
    assert examples.offsets.tolist() == [0]


def test_several_numbers_as_the_label_of_a_row() -> None:
    labels = np.array([[0, 1, 1], [1, 0, 0], [0, 0, 0], [1, 1, 1]], np.float32)
    whole = table(ROWS, pa.int32()).set_column(1, "label", as_arrow(labels))
    chunked = pa.concat_tables([whole.slice(2, 1), whole.slice(0, 0), whole.slice(0, 2)])
    assert labels_of(Examples.from_table(chunked)).tolist() == labels[[2, 0, 1]].tolist()
    examples = Examples.from_table(whole).take(np.array([3, 0]))
    assert labels_of(examples).dtype == np.float32
    assert labels_of(examples).tolist() == labels[[3, 0]].tolist()
    batch = Batch({"pixels": torch.zeros(2, 1)}, torch.from_numpy(labels_of(examples)))
    assert batch.weight == 2, "a row has one loss, whatever the number of its labels"
