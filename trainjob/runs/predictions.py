"""What the model and the baselines predict for the rows that are held back, row by row: `predictions/NAME.parquet`.

The rows are those of the test set or, where there is none, of the validation part, by their place in it.
"""

import io

import numpy as np
import pyarrow as pa

from trainjob.runs.files import PREDICTIONS
from trainjob.storage import Folder


def table(
    rows: np.ndarray,
    predicted: np.ndarray,
    classes: list[str],
    probabilities: np.ndarray | None = None,
    labels: np.ndarray | None = None,
    tokens: np.ndarray | None = None,
) -> pa.Table:
    """Columns `row` (int64), `prediction` (string; null for an index beyond the classes) and, where given,
    `probability` of the prediction (float32), `label` (string), `input_tokens` and `output_tokens` (int64), each [n];
    predictions and labels come as int64 indices, tokens as int64 [n, 2]."""
    names = pa.array([*classes, None], pa.string())
    columns = {"row": pa.array(rows, pa.int64()), "prediction": names.take(pa.array(predicted, pa.int64()))}
    if probabilities is not None:
        columns["probability"] = pa.array(probabilities, pa.float32())
    if labels is not None:
        columns["label"] = names.take(pa.array(labels, pa.int64()))
    if tokens is not None:
        columns |= {"input_tokens": pa.array(tokens[:, 0]), "output_tokens": pa.array(tokens[:, 1])}
    return pa.table(columns)


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
