"""What is predicted for the rows of a set, as a table."""

import numpy as np
import pyarrow as pa


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
