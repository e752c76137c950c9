"""The baselines that cost seconds. scikit-learn, which takes a second to import, is imported when one is computed."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from trainjob.baselines.boosting import fitted_trees
from trainjob.baselines.rows import Sampled
from trainjob.baselines.table_features import LinearFeatures
from trainjob.data import Preprocessor
from trainjob.kinds.target import Target
from trainjob.models.linear import save_linear
from trainjob.models.precomputed import as_matrix
from trainjob.models.trees import save_trees

MOST_FEATURES = 50_000
FEW_ROWS = 1000
"""With fewer rows, words that occur once are features, too."""


@dataclass(frozen=True)
class HeldOutPredictions:
    """A model's predictions for held-out rows."""

    predicted: np.ndarray
    """[n, ...], as labels are read; of classes int64 [n], the number of classes where it is none of them."""
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


def tfidf(train: Sampled, held: Sampled) -> tuple[Any, Any]:
    """TF-IDF weights of words and word pairs, sparse; of pairs of texts those of each text, their products and the
    amounts of their differences. Raises ValueError where the texts have no words."""
    from scipy import sparse
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(
        ngram_range=(1, 2),
        sublinear_tf=True,
        min_df=2 if len(train.values) >= FEW_ROWS else 1,
        max_features=MOST_FEATURES,
        token_pattern=r"\b\w+\b",
    )
    if not any("\n" in text for text in train.values):
        return vectorizer.fit_transform(train.values), vectorizer.transform(held.values)
    vectorizer.fit([line for text in train.values for line in text.split("\n")])

    weights: Any = vectorizer.transform

    def of_pairs(texts: Any) -> Any:
        first, second = (weights(each) for each in zip(*(text.split("\n") for text in texts), strict=True))
        return sparse.hstack([first, second, first.multiply(second), abs(first - second)], format="csr")

    return of_pairs(train.values), of_pairs(held.values)


def pixels(train: Sampled, held: Sampled) -> tuple[Any, Any]:
    """The pixels' brightness, scaled to 0 to 1."""
    return np.asarray(train.values) / 255, np.asarray(held.values) / 255


def texts(train: Sampled, held: Sampled) -> tuple[Any, Any]:
    """The texts themselves."""
    return train.values, held.values


FEATURES: dict[str, Callable[[Sampled, Sampled], tuple[Any, Any]]] = {
    "tfidf": tfidf,
    "pixels": pixels,
    "knownStrings": texts,
}
"""The features [n, f] of the training rows and of the held-out rows for a linear model, by the baseline's name."""


def predict_held_out(
    name: str, train: Sampled, held: Sampled, target: Target, validation: Callable[[], Sampled]
) -> HeldOutPredictions:
    """The predictions of boosting, of a linear model on FEATURES or, of another name, of one that looks at no row.
    `validation` reads the rows by which boosting is stopped."""
    save: Callable[[Preprocessor, Path], None] | None = None
    if name == "lightgbm":
        trees = fitted_trees(target.tree_objective, train, validation())
        guesses = target.boosted(target.tree_outputs(trees.predict(as_matrix(held.values))))
        save = partial(save_trees, trees)
    elif name == "linear":
        features = LinearFeatures(train.values)
        held_features = features.transform(held.values)
        guesses = target.linear(features.of_training, train.labels, held_features, held.labels)
        if guesses.weights is not None:
            save = partial(save_linear, features.arrays(*guesses.weights))
    elif name in FEATURES:
        train_features, held_features = FEATURES[name](train, held)
        guesses = target.linear(train_features, train.labels, held_features, held.labels)
    else:
        guesses = target.constant(len(held.labels))
    is_sample = len(train.rows) < train.of_rows and name in (*FEATURES, "linear", "lightgbm")
    notes = [f"learned from {len(train.rows):,} of the {train.of_rows:,} training rows"] if is_sample else []
    return HeldOutPredictions(guesses.predicted, guesses.probabilities, np.arange(len(held.labels)), notes, save=save)
