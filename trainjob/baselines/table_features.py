"""The rows of a table for baselines: columns of float64, with NaN for missing values, of int64 for categories, and
texts."""

from typing import Any

import numpy as np
import pyarrow as pa

from trainjob.models.linear import Arrays, clipped, texts_of
from trainjob.models.tfidf import TfidfFeatures


def categorical(table: Any) -> list[int]:
    """The indices of the columns of categories."""
    return [index for index, field in enumerate(table.schema) if pa.types.is_integer(field.type)]


def has_texts(table: Any) -> bool:
    return any(pa.types.is_string(field.type) for field in table.schema)


class LinearFeatures:
    """Features for a linear model: numbers of mean 0 and standard deviation 1, where missing ones are 0, a feature for
    each category, and the TF-IDF weights of the texts. Fitted on a table of training rows."""

    def __init__(self, table: Any) -> None:
        from sklearn.compose import make_column_transformer
        from sklearn.impute import SimpleImputer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder, StandardScaler

        self._categories = categorical(table)
        self._numbers = [index for index, field in enumerate(table.schema) if pa.types.is_floating(field.type)]
        self._transformer: Any = make_column_transformer(
            (make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler()), self._numbers),
            (OneHotEncoder(handle_unknown="ignore"), self._categories),
        )
        self._transformer.fit(clipped(table))
        texts = texts_of(table)
        self.tfidf = TfidfFeatures.fitted(texts) if texts is not None else None
        """TF-IDF weights of the texts, if the table has some."""

    def transform(self, table: Any) -> Any:
        """The features of rows, [n, f]."""
        features = self._transformer.transform(clipped(table))
        if self.tfidf is None:
            return features
        from scipy import sparse

        return sparse.hstack([features, self.tfidf.transform(texts_of(table) or [])], format="csr")

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
