"""The mistakes that a classifier is most sure of."""

import numpy as np
import pyarrow as pa

MOST_MISTAKES = 20


def confident_mistakes(predictions: pa.Table, limit: int = MOST_MISTAKES) -> np.ndarray:
    """Places int64 [m] in a table with the columns `label`, `prediction` and `probability`: of the wrong predictions
    those with the highest probability, the highest first, equal ones in the table's order."""
    wrong = np.flatnonzero(is_wrong(predictions))
    probability = predictions["probability"].to_numpy()[wrong]
    return wrong[np.argsort(-probability, kind="stable")[:limit]]


def is_wrong(predictions: pa.Table) -> np.ndarray:
    """Whether each prediction of such a table is wrong, bool [n]."""
    return predictions["prediction"].to_numpy() != predictions["label"].to_numpy()
