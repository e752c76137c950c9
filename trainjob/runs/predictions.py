"""What the model and the baselines predict for the rows that are held back, row by row: `predictions/NAME.parquet`.

The rows are those of the test set or, where there is none, of the validation part, by their place in it.
"""

import io
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trainjob.runs.files import PREDICTIONS
from trainjob.storage import Folder


def write_predictions(run: Folder, name: str, predictions: pa.Table) -> None:
    """Raises StorageError."""
    from pyarrow import parquet

    content = io.BytesIO()
    parquet.write_table(predictions, content)
    run.write(f"{PREDICTIONS}/{name}.parquet", content.getvalue())


def read_predictions(
    run: Folder, name: str, columns: Sequence[str] | None = None, rows: np.ndarray | None = None
) -> pa.Table:
    """What `write_predictions` wrote; of `columns` those that it has; with `rows` int64 [m], the rows of these numbers,
    in the file's order. Raises StorageError where it is missing, and pyarrow's errors where it is damaged."""
    from pyarrow import parquet

    content = pa.BufferReader(run.read(f"{PREDICTIONS}/{name}.parquet"))
    if columns is not None:
        has = parquet.read_schema(content).names
        columns = [column for column in columns if column in has]
    chosen = None if rows is None else pc.field("row").isin(pa.array(rows))
    return parquet.read_table(content, columns=columns, filters=chosen)


def indices(column: pa.ChunkedArray, classes: list[str]) -> np.ndarray:
    """The classes of a column as int64 indices [n]; nulls and others as `len(classes)`."""
    numbers = {name: number for number, name in enumerate(classes)}
    return np.array([numbers.get(name, len(classes)) for name in column.to_pylist()], np.int64)
