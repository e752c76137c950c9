"""The baselines that cost seconds. scikit-learn, which takes a second to import, is imported when one is computed."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from trainjob.baselines.boosting import fitted_trees
from trainjob.baselines.features import FEATURES
from trainjob.baselines.rows import Sampled
from trainjob.baselines.table_features import has_texts
from trainjob.data import Preprocessor
from trainjob.kinds.target import Target
from trainjob.models.trees import predictions_of, save_trees


@dataclass(frozen=True)
class HeldOutPredictions:
    """A model's predictions for held-out rows."""

    predicted: np.ndarray
    """[n, ...], in the form of labels; for classes int64 [n], with the number of classes for an answer that is none of
    them."""
    probabilities: np.ndarray | None
    """Probabilities of these predictions, float32 [n]; None if the model has none."""
    row_indices: np.ndarray
    """Indices of these held-out rows, int64 [n]."""
    notes: list[str]
    """Remarks for the user."""
    tokens: np.ndarray | None = None
    """Input and output tokens of a language model for each of these rows, int64 [n, 2]; None for other baselines."""
    save: Callable[[Preprocessor, Path], None] | None = None
    """Writes the model that made them into a folder; None where it is not kept."""


def predict_held_out(
    name: str, train: Sampled, held: Sampled, target: Target, validation: Callable[[], Sampled]
) -> HeldOutPredictions:
    """The predictions of boosting, of a linear model on FEATURES or, for any other name, of a model that ignores the
    features. `validation` reads the rows that stop boosting early."""
    save: Callable[[Preprocessor, Path], None] | None = None
    if name == "lightgbm":
        trees = fitted_trees(target, train, validation())
        guesses = target.boosted(target.tree_outputs(predictions_of(trees, held.values)))
        save = partial(save_trees, trees)
    elif name in FEATURES:
        features = FEATURES[name](train.values)
        guesses = target.linear(features.of_training, train.labels, features.transform(held.values), held.labels)
        if features.save is not None and guesses.weights is not None:
            save = partial(features.save, *guesses.weights)
    else:
        guesses = target.constant(len(held.labels))
    is_sample = len(train.rows) < train.of_rows and name in (*FEATURES, "lightgbm")
    notes = [f"learned from {len(train.rows):,} of the {train.of_rows:,} training rows"] if is_sample else []
    if name == "lightgbm" and has_texts(train.values):
        notes.append("reads all columns but the texts")
    return HeldOutPredictions(guesses.predicted, guesses.probabilities, np.arange(len(held.labels)), notes, save=save)
