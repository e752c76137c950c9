"""LightGBM's trees as a model of a run: the baseline that its network is compared with."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from torch import Tensor, nn

from trainjob.data import Preprocessor
from trainjob.data.arrays import as_lists
from trainjob.data.batches.examples import Examples
from trainjob.data.read.rows import Rows, row_number
from trainjob.errors import UserError
from trainjob.kinds.input import Input
from trainjob.kinds.target import Target
from trainjob.models.classifier import Classifier

MODEL_TYPE = "trainjob-lightgbm"
FILE = "lightgbm.txt"
"""The trees in LightGBM's own text format, which `lightgbm.Booster(model_file=…)` reads."""


class TreesInput:
    """The input of a run's network, but prepared rows are the outputs of trees, float64: these split on the values in a
    table, not on what a network takes."""

    value_type: ClassVar[pa.DataType] = pa.float64()

    def __init__(self, table: Input, target: Target, trees: Any) -> None:
        self._table, self._target, self._trees = table, target, trees

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._table, name)

    def alone(self) -> Self:
        return self

    def transform(self, table: pa.Table, where: Callable[[int], Any] = row_number) -> pa.Array:
        features = as_matrix(self._table.plain(Rows(table, where)))
        outputs = np.empty((0, self._target.width))
        if len(features):
            outputs = self._target.tree_outputs(self._trees.predict(features))
        return as_lists(outputs.reshape(-1), np.full(len(outputs), self._target.width, np.int64))

    def batch(self, examples: Examples) -> dict[str, np.ndarray]:
        return {"outputs": examples.values.reshape(len(examples), -1)}


class Trees(Classifier[nn.Identity]):
    """Passes on the outputs that TreesInput has computed."""

    problem_type = "single_label_classification"

    def forward(self, outputs: Tensor) -> Tensor:
        return outputs

    def save(self, folder: Path) -> None:
        raise NotImplementedError("the baseline saves its trees")

    def save_config(self, folder: Path) -> None:
        raise NotImplementedError("the baseline saves its trees")


def save_trees(trees: Any, preprocessor: Preprocessor, folder: Path) -> None:
    """Writes a LightGBM Booster, which predicts the rows of `preprocessor.input.plain`, as a model."""
    trees.save_model(folder / FILE)
    (folder / "config.json").write_text(json.dumps({"model_type": MODEL_TYPE}))
    preprocessor.save(folder)


def load_trees(folder: Path, preprocessor: Preprocessor) -> tuple[Trees, Preprocessor]:
    """Raises UserError where the package lightgbm is missing, ValueError for a damaged file."""
    try:
        import lightgbm
    except ImportError:
        raise UserError(f"{folder} needs the package lightgbm: pip install lightgbm") from None
    try:
        trees = lightgbm.Booster(model_file=folder / FILE)
    except lightgbm.basic.LightGBMError as error:
        raise ValueError(f"{FILE}: {error}") from None
    inputs: Any = TreesInput(preprocessor.input, preprocessor.target, trees)
    return Trees(nn.Identity()), Preprocessor(preprocessor.kind, inputs, preprocessor.target)


def as_matrix(table: Any) -> np.ndarray:
    """The columns of `TableInput.plain`, float64 [n, columns]."""
    assert isinstance(table, pa.Table)
    return np.stack([column.to_numpy() for column in table.columns], axis=1, dtype=np.float64, casting="unsafe")
