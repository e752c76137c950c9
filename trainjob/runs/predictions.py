"""The predictions of the model and the baselines for each held-out row: `predictions/NAME.parquet`.

The rows are those of the test set or, without one, of the validation set; `row` is the row's index in that set.
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
    """Reads a table of `write_predictions`, in the file's order.

    Args:
        columns: Read only these columns; those that the file lacks are ignored.
        rows: Read only the rows with these indices, int64 [m].

    Raises StorageError if the file is missing, and pyarrow's errors if it is damaged."""
    from pyarrow import parquet

    content = pa.BufferReader(run.read(f"{PREDICTIONS}/{name}.parquet"))
    if columns is not None:
        present = parquet.read_schema(content).names
        columns = [column for column in columns if column in present]
    row_filter = None if rows is None else pc.field("row").isin(pa.array(rows))
    return parquet.read_table(content, columns=columns, filters=row_filter)
