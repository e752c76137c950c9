"""The rows of a table for baselines: columns of float64, with NaN for missing values, and of int64 for categories."""

from typing import Any

import numpy as np
import pyarrow as pa

from trainjob.models.linear import Arrays, clipped


def categorical(table: Any) -> list[int]:
    """The indices of the columns of categories."""
    return [index for index, field in enumerate(table.schema) if pa.types.is_integer(field.type)]


class LinearFeatures:
    """Features for a linear model: numbers of mean 0 and standard deviation 1, where missing ones are 0, and a feature
    for each category. Fitted on a table of training rows."""

    def __init__(self, table: Any) -> None:
        from sklearn.compose import make_column_transformer
        from sklearn.impute import SimpleImputer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder, StandardScaler

        self._categories = categorical(table)
        self._numbers = [index for index in range(table.num_columns) if index not in self._categories]
        self._transformer: Any = make_column_transformer(
            (make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler()), self._numbers),
            (OneHotEncoder(handle_unknown="ignore"), self._categories),
        )
        self.of_training: Any = self._transformer.fit_transform(clipped(table))
        """The features of these rows, [n, f]."""

    def transform(self, table: Any) -> Any:
        """The features of other rows, [n, f]."""
        return self._transformer.transform(clipped(table))

    def arrays(self, weights: np.ndarray, intercepts: np.ndarray) -> Arrays:
        """The linear model with these weights [f, width] and intercepts [width]."""
        found: dict[str, np.ndarray] = {
            "weights": weights,
            "intercepts": intercepts,
            "numbers": np.array(self._numbers, np.int64),
            "categories": np.array(self._categories, np.int64),
            **{name: np.empty(0) for name in ("typical", "mean", "scale")},
        }
        parts = self._transformer.named_transformers_
        if self._numbers:
            imputer, scaler = (step for _, step in parts["pipeline"].steps)
            found |= {"typical": imputer.statistics_, "mean": scaler.mean_, "scale": scaler.scale_}
        if self._categories:
            found |= {f"values_{n}": each for n, each in enumerate(parts["onehotencoder"].categories_)}
        return found
