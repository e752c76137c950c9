"""LightGBM's trees as a model of a run: the baseline that its network is compared with."""

import json
from pathlib import Path
from typing import Any

from trainjob.data import Preprocessor
from trainjob.errors import UserError
from trainjob.models.precomputed import Precomputed, as_matrix, precomputed

MODEL_TYPE = "trainjob-lightgbm"
FILE = "lightgbm.txt"
"""The trees in LightGBM's own text format, which `lightgbm.Booster(model_file=…)` reads."""


def save_trees(trees: Any, preprocessor: Preprocessor, folder: Path) -> None:
    """Writes a LightGBM Booster, which predicts the rows of `preprocessor.input.plain`, as a model."""
    trees.save_model(folder / FILE)
    (folder / "config.json").write_text(json.dumps({"model_type": MODEL_TYPE}))
    preprocessor.save(folder)


def load_trees(folder: Path, preprocessor: Preprocessor) -> tuple[Precomputed, Preprocessor]:
    """Raises UserError where the package lightgbm is missing, ValueError for a damaged file."""
    try:
        import lightgbm
    except ImportError:
        raise UserError(f"{folder} needs the package lightgbm: pip install lightgbm") from None
    try:
        trees: Any = lightgbm.Booster(model_file=folder / FILE)
    except lightgbm.basic.LightGBMError as error:
        raise ValueError(f"{FILE}: {error}") from None
    target = preprocessor.target
    return precomputed(preprocessor, lambda plain: target.tree_outputs(trees.predict(as_matrix(plain))))
