"""What the model and the baselines predict for the rows that are held back, row by row: `predictions/NAME.parquet`.

The rows are those of the test set or, where there is none, of the validation part, by their place in it.
"""

import io

import numpy as np
import pyarrow as pa

from trainjob.runs.files import PREDICTIONS
from trainjob.storage import Folder


def write_predictions(run: Folder, name: str, predictions: pa.Table) -> None:
    """Raises StorageError."""
    from pyarrow import parquet

    content = io.BytesIO()
    parquet.write_table(predictions, content)
    run.write(f"{PREDICTIONS}/{name}.parquet", content.getvalue())


def read_predictions(run: Folder, name: str) -> pa.Table:
    """What `write_predictions` wrote. Raises StorageError where it is missing."""
    from pyarrow import parquet

    return parquet.read_table(pa.BufferReader(run.read(f"{PREDICTIONS}/{name}.parquet")))


def indices(column: pa.ChunkedArray, classes: list[str]) -> np.ndarray:
    """The classes of a column as int64 indices [n]; nulls and others as `len(classes)`."""
    numbers = {name: number for number, name in enumerate(classes)}
    return np.array([numbers.get(name, len(classes)) for name in column.to_pylist()], np.int64)
