"""Linear models of the columns of a table as models of a run: baselines that its network is compared with."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from trainjob.data import Preprocessor
from trainjob.models.precomputed import Precomputed, as_matrix, precomputed

MODEL_TYPE = "trainjob-linear"
LARGEST = 1e30
"""Larger numbers, such as infinity, count as this."""

Arrays = Mapping[str, np.ndarray]
"""`weights` [features, width] and `intercepts` [width]; `numbers` and `categories`, the indices of these columns;
`typical`, `mean` and `scale` of each of `numbers`; `values_0`, `values_1` …, the values of each of `categories`."""


def clipped(table: Any) -> np.ndarray:
    """The columns of `TableInput.plain` without infinity, float64 [n, columns]."""
    return np.clip(as_matrix(table), -LARGEST, LARGEST)


def linear_outputs(arrays: Arrays, table: Any) -> np.ndarray:
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
    return outputs.astype(np.float64)


def save_linear(arrays: Arrays, preprocessor: Preprocessor, folder: Path) -> None:
    """Writes a linear model of the rows of `preprocessor.input.plain`."""
    safetensors.numpy.save_file(
        {name: np.ascontiguousarray(each) for name, each in arrays.items()}, folder / "model.safetensors"
    )
    (folder / "config.json").write_text(json.dumps({"model_type": MODEL_TYPE}))
    preprocessor.save(folder)


def load_linear(folder: Path, preprocessor: Preprocessor) -> tuple[Precomputed, Preprocessor]:
    arrays = safetensors.numpy.load_file(folder / "model.safetensors")
    return precomputed(preprocessor, lambda plain: linear_outputs(arrays, plain))
