"""Baselines as models of a run: their outputs are computed when rows are prepared."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import pyarrow as pa
from torch import Tensor

from trainjob.data import Preprocessor
from trainjob.data.arrays import as_lists
from trainjob.data.batches.examples import Examples
from trainjob.data.read.rows import Rows, row_number
from trainjob.kinds.input import Input
from trainjob.models.classifier import AnsweringClassifier

Compute = Callable[[Any], np.ndarray]
"""Outputs as a network has them, float64 [n, width], of what `Input.plain` returns for at least one row."""


class PrecomputedInput:
    """The input of a run's network, but prepared rows are the outputs of a baseline, float64, which reads
    `Input.plain` instead of what a network takes."""

    def __init__(self, table: Input, width: int, compute: Compute) -> None:
        self._table, self._width, self._compute = table, width, compute

    @property
    def value_type(self) -> pa.DataType:
        return pa.float64()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._table, name)

    def alone(self) -> Self:
        return self

    def transform(self, table: pa.Table, where: Callable[[int], Any] = row_number) -> pa.Array:
        plain = self._table.plain(Rows(table, where))
        outputs = self._compute(plain) if len(plain) else np.empty((0, self._width))
        return as_lists(outputs.reshape(-1), np.full(len(outputs), self._width, np.int64))

    def batch(self, examples: Examples) -> dict[str, np.ndarray]:
        return {"outputs": examples.values.reshape(len(examples), -1)}


class Precomputed(AnsweringClassifier):
    """Passes on the outputs that PrecomputedInput has computed."""

    def __init__(self, problem_type: str) -> None:
        super().__init__()
        self._problem_type = problem_type

    @property
    def problem_type(self) -> str:
        return self._problem_type

    def forward(self, outputs: Tensor) -> Tensor:
        return outputs


def precomputed(preprocessor: Preprocessor, compute: Compute) -> tuple[Precomputed, Preprocessor]:
    """The model whose outputs `compute` returns, and its preprocessor."""
    inputs: Any = PrecomputedInput(preprocessor.input, preprocessor.target.width, compute)
    return Precomputed(preprocessor.target.problem_type), Preprocessor(preprocessor.kind, inputs, preprocessor.target)


def as_matrix(table: Any) -> np.ndarray:
    """The columns of `TableInput.plain` but the texts, float64 [n, columns]."""
    columns = [column.to_numpy() for column in table.columns if not pa.types.is_string(column.type)]
    return np.stack(columns, axis=1, dtype=np.float64, casting="unsafe")
