"""Predictions for the rows of a set, as a table."""

import numpy as np
import pyarrow as pa

ALL_KEPT = 100
"""Up to this many classes, each row keeps the probabilities of all classes."""
MAX_PROBABILITIES = 20
"""With more classes, each row keeps the probabilities of this many, the highest."""


def prediction_table(
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


def kept_classes(classes: int) -> int:
    """The number of classes whose probabilities a row keeps."""
    return classes if classes <= ALL_KEPT else MAX_PROBABILITIES


def ranked_table(rows: np.ndarray, ranked: np.ndarray, probabilities: np.ndarray, labels: np.ndarray) -> pa.Table:
    """The table of rows int64 [n] with labels int64 [n]: the most probable classes int64 [n, k], best first, and their
    probabilities float32 [n, k]. Classes are indices in all columns; see `with_names`."""
    kept = ranked.shape[1]
    return pa.table(
        {
            "row": pa.array(rows, pa.int64()),
            "prediction": pa.array(ranked[:, 0], pa.int32()),
            "probability": pa.array(probabilities[:, 0], pa.float32()),
            "label": pa.array(labels, pa.int32()),
            "classes": _lists(ranked.astype(np.int32), kept),
            "probabilities": _lists(probabilities.astype(np.float32), kept),
        }
    )


def with_names(table: pa.Table, classes: list[str]) -> pa.Table:
    """Replaces the class indices of a `ranked_table` by names."""
    names = pa.array(classes, pa.string())
    for column in ("prediction", "label"):
        number = table.column_names.index(column)
        table = table.set_column(number, column, names.take(table[column].combine_chunks()))
    lists = table["classes"].combine_chunks()
    ranked = pa.ListArray.from_arrays(lists.offsets, names.take(lists.values))
    return table.set_column(table.column_names.index("classes"), "classes", ranked)


def _lists(values: np.ndarray, length: int) -> pa.ListArray:
    """Values [n, length] as one list for each row."""
    offsets = pa.array(np.arange(len(values) + 1, dtype=np.int32) * length)
    return pa.ListArray.from_arrays(offsets, pa.array(np.ascontiguousarray(values).reshape(-1)))
