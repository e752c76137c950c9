"""Gradient boosting by LightGBM, which is imported when it is needed, as a baseline for tables."""

import os
from typing import Any

import numpy as np

from trainjob.baselines.rows import Sampled
from trainjob.baselines.table_features import categorical
from trainjob.kinds.target import Target
from trainjob.models.precomputed import as_matrix

ROUNDS, PATIENCE = 2000, 50
"""Most trees for each class; fitting stops if the validation loss has not fallen for the second number of trees."""
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"num_leaves": 7, "min_data_in_leaf": 5},
    {"num_leaves": 15, "min_data_in_leaf": 10, "feature_fraction": 0.5},
)
"""Candidates; the one with the lowest validation loss is used. Other parameters have LightGBM's defaults."""
FIXED: dict[str, Any] = {
    "learning_rate": 0.05,
    "seed": 0,
    "verbosity": -1,
    "deterministic": True,
    "force_row_wise": True,  # equal results in every run
}


def fitted_trees(target: Target, train: Sampled, validation: Sampled) -> list[Any]:
    """A LightGBM Booster for each of the target's `tree_labels`."""
    labels = zip(target.tree_labels(train.labels), target.tree_labels(validation.labels), strict=True)
    return [_fitted(target.tree_objective, train, own, validation, held) for own, held in labels]


def _fitted(
    objective: dict[str, Any], train: Sampled, labels: np.ndarray, validation: Sampled, held: np.ndarray
) -> Any:
    """The best of SETTINGS, a LightGBM Booster that is fitted on the training rows, with labels [n], and cut to the
    number of trees that is best for the validation rows, with labels `held` [m]."""
    import lightgbm

    best: tuple[float, Any] | None = None
    for settings in SETTINGS:
        rows = lightgbm.Dataset(
            as_matrix(train.values), labels, categorical_feature=categorical(train.values), params=FIXED
        )
        model = lightgbm.train(
            FIXED | {"num_threads": len(os.sched_getaffinity(0))} | objective | settings,
            rows,
            ROUNDS,
            [rows.create_valid(as_matrix(validation.values), held)],
            callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
        )
        (loss,) = model.best_score["valid_0"].values()
        if best is None or loss < best[0]:
            best = loss, model
    assert best is not None
    return best[1]
