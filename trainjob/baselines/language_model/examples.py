"""Chooses the training rows that a language model is shown as examples."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from trainjob.baselines.rows import Sampled

Shots = list[tuple[str, str]]
"""(text, class)."""


def chooser(train: Sampled, classes: Sequence[str], shots: int, nearest: bool, seed: int) -> Callable[[str], Shots]:
    """Returns a function that chooses the examples for a text: `shots` of each class, or all if there are fewer. They
    are the same for all texts, drawn by the seed, or the `nearest` to each by the cosine of TF-IDF, the nearest last.
    They come only from `train`.
    """
    of_class = [np.flatnonzero(train.labels == number) for number in range(len(classes))]
    if nearest:
        rank = _similarities(train)

        def chosen(text: str) -> list[int]:
            similar = rank(text)
            best = [rows[np.argsort(-similar[rows], kind="stable")[:shots]] for rows in of_class]
            found = np.concatenate(best)
            return found[np.argsort(similar[found], kind="stable")].tolist()

        return lambda text: [_example(train, row, classes) for row in chosen(text)]
    random = np.random.default_rng(seed)
    drawn = np.concatenate([random.permutation(rows)[:shots] for rows in of_class])
    fixed = [_example(train, row, classes) for row in random.permutation(drawn).tolist()]
    return lambda _: fixed


def _similarities(train: Sampled) -> Callable[[str], np.ndarray]:
    """Cosine of a text to each training text, float [n]."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer: Any = TfidfVectorizer(sublinear_tf=True, token_pattern=r"\b\w+\b")
    known = vectorizer.fit_transform(train.values)
    return lambda text: (known @ vectorizer.transform([text]).T).toarray()[:, 0]


def _example(train: Sampled, row: int, classes: Sequence[str]) -> tuple[str, str]:
    return str(train.values[row]), classes[int(train.labels[row])]
