"""The wrong predictions of a classifier with the highest probability."""

import numpy as np
import pyarrow as pa

MAX_WORST_ROWS = 20
"""Rows in a report's list of the worst predictions."""


def confident_mistakes(predictions: pa.Table) -> np.ndarray:
    """The indices, int64 [m], of the MAX_WORST_ROWS wrong predictions with the highest probability, the highest first,
    equal ones in the table's order. The table has the columns `label`, `prediction` and `probability`."""
    wrong = np.flatnonzero(is_wrong(predictions))
    probability = predictions["probability"].to_numpy()[wrong]
    return wrong[np.argsort(-probability, kind="stable")[:MAX_WORST_ROWS]]


def is_wrong(predictions: pa.Table) -> np.ndarray:
    """Whether each prediction of such a table is wrong, bool [n]."""
    return predictions["prediction"].to_numpy() != predictions["label"].to_numpy()
