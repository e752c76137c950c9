"""LightGBM's trees as a model of a run: the baseline that its network is compared with."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trainjob.data import Preprocessor
from trainjob.errors import UserError
from trainjob.models.precomputed import Precomputed, as_matrix, precomputed

MODEL_TYPE = "trainjob-lightgbm"
FILE = "lightgbm.txt"
"""The trees in LightGBM's own text format, which `lightgbm.Booster(model_file=…)` reads. Where there are several
Boosters, the others are in lightgbm-2.txt, lightgbm-3.txt …"""


def predictions_of(boosters: Sequence[Any], plain: Any) -> list[np.ndarray]:
    """The predictions of LightGBM's Boosters for what `Input.plain` returned."""
    matrix = as_matrix(plain)
    return [each.predict(matrix) for each in boosters]


def save_trees(boosters: Sequence[Any], preprocessor: Preprocessor, folder: Path) -> None:
    """Writes LightGBM Boosters, which predict the rows of `preprocessor.input.plain`, as a model."""
    for number, booster in enumerate(boosters, start=1):
        booster.save_model(folder / _file(number))
    config = {"model_type": MODEL_TYPE, "boosters": len(boosters), "standardized": True}
    (folder / "config.json").write_text(json.dumps(config))
    preprocessor.save(folder)


def load_trees(folder: Path, preprocessor: Preprocessor) -> tuple[Precomputed, Preprocessor]:
    """Raises UserError where the package lightgbm is missing, ValueError for a damaged file."""
    try:
        import lightgbm
    except ImportError:
        raise UserError(f"{folder} needs the package lightgbm: pip install lightgbm") from None
    config = json.loads((folder / "config.json").read_bytes())
    boosters = list[Any]()
    for file in map(_file, range(1, config.get("boosters", 1) + 1)):  # earlier versions had one
        try:
            boosters.append(lightgbm.Booster(model_file=folder / file))
        except lightgbm.basic.LightGBMError as error:
            raise ValueError(f"{file}: {error}") from None
    target = preprocessor.target

    def outputs(plain: Any) -> np.ndarray:
        found = target.tree_outputs(predictions_of(boosters, plain))
        # earlier versions' trees predict numbers in the labels' own unit
        return found if config.get("standardized", False) else target.standardized(found)

    return precomputed(preprocessor, outputs)


def _file(number: int) -> str:
    """The file of a Booster, counted from 1."""
    return FILE if number == 1 else f"lightgbm-{number}.txt"
