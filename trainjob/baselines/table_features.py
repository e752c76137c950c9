"""The rows of a table for baselines: columns of float64, with NaN for missing values, and of int64 for categories."""

from typing import Any

import numpy as np
import pyarrow as pa

from trainjob.baselines.rows import Sampled
from trainjob.models.trees import as_matrix

LARGEST = 1e30
"""Larger numbers, such as infinity, count as this."""


def categorical(table: Any) -> list[int]:
    """The indices of the columns of categories."""
    return [index for index, field in enumerate(table.schema) if pa.types.is_integer(field.type)]


def linear_features(train: Sampled, held: Sampled) -> tuple[Any, Any]:
    """Features [n, f] of the training rows and of the held-out rows for a linear model: numbers of mean 0 and standard
    deviation 1, where missing ones are 0, and a feature for each category."""
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    matrix, held_matrix = (np.clip(as_matrix(each.values), -LARGEST, LARGEST) for each in (train, held))
    categories = categorical(train.values)
    numbers = [index for index in range(matrix.shape[1]) if index not in categories]
    transformer = make_column_transformer(
        (make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore"), categories),
    )
    return transformer.fit_transform(matrix), transformer.transform(held_matrix)
