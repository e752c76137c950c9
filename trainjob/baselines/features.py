"""The features of rows for linear models, as baselines."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trainjob.baselines.table_features import LinearFeatures
from trainjob.data import Preprocessor
from trainjob.models.linear import save_linear
from trainjob.models.tfidf import TfidfFeatures


@dataclass(frozen=True)
class Features:
    """Features for a linear model, fitted on training rows."""

    of_training: Any
    """The features of the training rows, [n, f]."""
    transform: Callable[[Any], Any]
    """Computes the features of other rows, [n, f]."""
    save: Callable[[np.ndarray, np.ndarray, Preprocessor, Path], None] | None = None
    """Writes the linear model with weights [f, width] and intercepts [width] into a folder; None where it is not
    kept."""


def tfidf(texts: Any) -> Features:
    """Raises ValueError where the texts have no words."""
    found = TfidfFeatures.fitted(texts)
    return Features(found.transform(texts), found.transform, found.save)


def _columns(table: Any) -> Features:
    found = LinearFeatures(table)

    def save(weights: np.ndarray, intercepts: np.ndarray, preprocessor: Preprocessor, folder: Path) -> None:
        save_linear(found.arrays(weights, intercepts), found.tfidf, preprocessor, folder)

    return Features(found.transform(table), found.transform, save)


def _brightness(pixels: Any) -> np.ndarray:
    """The brightness of pixels, from 0 to 1."""
    return np.asarray(pixels) / 255


FEATURES: dict[str, Callable[[Any], Features]] = {
    "tfidf": tfidf,
    "linear": _columns,
    "pixels": lambda pixels: Features(_brightness(pixels), _brightness),
    "knownStrings": lambda texts: Features(texts, lambda others: others),
}
"""The features of a baseline by its name, fitted on the values of the training rows as `Input.plain` returns them."""
