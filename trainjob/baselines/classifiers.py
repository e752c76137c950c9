"""The baselines that cost seconds. scikit-learn, which takes a second to import, is imported when one is computed."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainjob.baselines.rows import Sampled

MOST_FEATURES = 50_000
INVERSE_REGULARIZATION = 10.0
UPDATES = 1e9
"""Limit for the number of weights, beyond which fitting stops: about 5 seconds of one core."""
FEWEST_EPOCHS, MOST_EPOCHS = 5, 300
FEW_ROWS = 1000
"""With fewer rows, words that occur once are features, too."""


@dataclass(frozen=True)
class HeldOutPredictions:
    """A classifier's predictions for held-out rows."""

    predicted: np.ndarray
    """int64 [n]; the number of classes where it is none of them."""
    probabilities: np.ndarray | None
    """Probabilities of these predictions, float32 [n]; None if the baseline has none."""
    row_indices: np.ndarray
    """Indices of these held-out rows, int64 [n]."""
    notes: list[str]
    """Remarks for the user."""
    tokens: np.ndarray | None = None
    """Input and output tokens of a language model for each of these rows, int64 [n, 2]; None for other baselines."""


Probabilities = np.ndarray
"""float32 [n, C]."""


def most_frequent(train: Sampled, held: Sampled, class_counts: list[int]) -> Probabilities:
    """Each class with its share of the training rows."""
    shares = np.array(class_counts, np.float32) / sum(class_counts)
    return np.tile(shares, (len(held.labels), 1))


def tfidf(train: Sampled, held: Sampled, class_counts: list[int]) -> Probabilities:
    """Raises ValueError where the texts have no words."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(
        ngram_range=(1, 2),
        sublinear_tf=True,
        min_df=2 if len(train.values) >= FEW_ROWS else 1,
        max_features=MOST_FEATURES,
        token_pattern=r"\b\w+\b",
    )
    features = vectorizer.fit_transform(train.values)
    return _logistic_regression(features, train.labels, vectorizer.transform(held.values), len(class_counts))


def pixels(train: Sampled, held: Sampled, class_counts: list[int]) -> Probabilities:
    """Logistic regression on the pixels' brightness, scaled to 0 to 1."""
    shares, held_shares = (np.asarray(sampled.values) / 255 for sampled in (train, held))
    return _logistic_regression(shares, train.labels, held_shares, len(class_counts))


CLASSIFIERS: dict[str, Callable[[Sampled, Sampled, list[int]], Probabilities]] = {
    "mostFrequent": most_frequent,
    "tfidf": tfidf,
    "pixels": pixels,
}
"""Computes the probabilities of the held-out rows from the training rows and the class counts of the whole training
set."""


def predict_held_out(name: str, train: Sampled, held: Sampled, class_counts: list[int]) -> HeldOutPredictions:
    """The predictions of one of CLASSIFIERS."""
    probabilities = CLASSIFIERS[name](train, held, class_counts)
    notes: list[str] = []
    if name != "mostFrequent" and len(train.rows) < train.of_rows:
        notes = [f"learned from {len(train.rows):,} of the {train.of_rows:,} training rows"]
    return HeldOutPredictions(
        probabilities.argmax(axis=1), probabilities.max(axis=1), np.arange(len(held.labels)), notes
    )


def _logistic_regression(features: Any, labels: np.ndarray, held: Any, classes: int) -> Probabilities:
    """A class that the sampled training rows lack has probability 0."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    updates = classes * (features.nnz if hasattr(features, "nnz") else features.size)
    epochs = int(np.clip(UPDATES / updates, FEWEST_EPOCHS, MOST_EPOCHS))
    # saga gets as far as lbfgs in a tenth of the time, and sees to single precision, too
    model = LogisticRegression(C=INVERSE_REGULARIZATION, solver="saga", max_iter=epochs, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # what it has come to by then is what is compared
        model.fit(features.astype(np.float32), labels)
    probabilities = np.zeros((held.shape[0], classes), np.float32)
    probabilities[:, model.classes_] = model.predict_proba(held.astype(np.float32))
    return probabilities
