"""Linear models of the columns of a table as models of a run: baselines that its network is compared with."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import safetensors.numpy

from trainjob.data import Preprocessor
from trainjob.models.precomputed import Precomputed, as_matrix, precomputed
from trainjob.models.tfidf import VOCABULARY, TfidfFeatures

MODEL_TYPE = "trainjob-linear"
MAX_NUMBER = 1e30
"""Larger numbers, such as infinity, count as this."""

Arrays = Mapping[str, np.ndarray]
"""`weights` [features, width] and `intercepts` [width]; `numbers` and `categories`, the indices of these columns;
`typical`, `mean` and `scale` of each of `numbers`; `values_0`, `values_1` …, the values of each of `categories`; and of
a table with texts, whose terms have the last weights, `idf` [terms]."""


def clipped(table: Any) -> np.ndarray:
    """The columns of `TableInput.plain` without infinity, float64 [n, columns]."""
    return np.clip(as_matrix(table), -MAX_NUMBER, MAX_NUMBER)


def texts_of(table: Any) -> list[str] | None:
    """The texts of each row of `TableInput.plain`, joined by blanks; None if the table has no texts."""
    columns = [column.to_pylist() for column in table.columns if pa.types.is_string(column.type)]
    return [" ".join(filter(None, texts)) for texts in zip(*columns, strict=True)] if columns else None


def linear_outputs(arrays: Arrays, tfidf: TfidfFeatures | None, table: Any) -> np.ndarray:
    """Outputs float64 [n, width] of the columns of `TableInput.plain`. Missing numbers count as the typical one, and
    unknown categories as none."""
    matrix, weights = clipped(table), arrays["weights"]
    numbers, typical = matrix[:, arrays["numbers"]], arrays["typical"]
    numbers = (np.where(np.isnan(numbers), typical, numbers) - arrays["mean"]) / arrays["scale"]
    first = numbers.shape[1]
    outputs = numbers.astype(weights.dtype) @ weights[:first] + arrays["intercepts"]
    for number, column in enumerate(arrays["categories"]):
        values = arrays[f"values_{number}"]
        of_values = np.vstack([weights[first : first + len(values)], np.zeros((1, weights.shape[1]), weights.dtype)])
        places = np.minimum(np.searchsorted(values, matrix[:, column]), len(values) - 1)
        outputs = outputs + of_values[np.where(values[places] == matrix[:, column], places, len(values))]
        first += len(values)
    if tfidf is not None:
        outputs = outputs + tfidf.transform(texts_of(table) or []).astype(weights.dtype) @ weights[first:]
    return outputs.astype(np.float64)


def save_linear(arrays: Arrays, tfidf: TfidfFeatures | None, preprocessor: Preprocessor, folder: Path) -> None:
    """Writes a linear model of the rows of `preprocessor.input.plain`."""
    if tfidf is not None:
        arrays = {**arrays, "idf": tfidf.idf}
        tfidf.save_terms(folder)
    safetensors.numpy.save_file(
        {name: np.ascontiguousarray(each) for name, each in arrays.items()}, folder / "model.safetensors"
    )
    (folder / "config.json").write_text(json.dumps({"model_type": MODEL_TYPE}))
    preprocessor.save(folder)


def load_linear(folder: Path, preprocessor: Preprocessor) -> tuple[Precomputed, Preprocessor]:
    arrays = safetensors.numpy.load_file(folder / "model.safetensors")
    tfidf = None
    if (folder / VOCABULARY).is_file():
        tfidf = TfidfFeatures.loaded(folder, arrays["idf"])
    return precomputed(preprocessor, lambda plain: linear_outputs(arrays, tfidf, plain))
