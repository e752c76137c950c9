"""The rows that baselines learn from and are scored on, as they are before the model's tokenizer sees them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainjob.api import TrainJobSpec
from trainjob.data import Fitted
from trainjob.data.cleaning import clean
from trainjob.data.prepare import read_set
from trainjob.data.rows import Rows
from trainjob.data.tokenizers import CHARACTERS_PER_TOKEN
from trainjob.kinds.inputs.image import ImageInput
from trainjob.kinds.inputs.text import TextInput, joined_texts

MOST_ROWS = 50_000
MOST_TOKENS = 2_000_000
"""Of the texts that are kept of a set, where there are at most FEW_CLASSES; with more of them fewer."""
FEW_CLASSES = 30
MOST_PIXELS = 100_000_000
"""Values of the images that are kept of a set, times the classes."""
MOST_RESIZED = 4_000
"""Images that are not of one size may be large photographs."""
SIDE = 32
"""Images are shrunk to at most so many pixels a side."""


@dataclass(frozen=True)
class Sampled:
    """Rows of a set, all or a random sample, in the set's order."""

    values: list[str] | np.ndarray
    """Cleaned texts, or pixels uint8 [n, features]."""
    labels: np.ndarray
    """int64 [n]."""
    rows: np.ndarray
    """Their places in the set, int64 [n]."""
    of_rows: int
    """Rows of the set."""


def sample(spec: TrainJobSpec, fitted: Fitted, name: str) -> Sampled:
    """The rows of the set `name`, as many as a baseline deals with in seconds, drawn by the training's seed.

    Raises DataError for rows that cannot be used, StorageError where they cannot be reached.
    """
    total = fitted.rows[name]
    chosen = np.arange(total)
    if (most := most_rows(fitted)) < total:
        chosen = np.sort(np.random.default_rng(spec.training.seed).choice(total, most, replace=False))
    values: list[Any] = []
    labels: list[np.ndarray] = []
    for rows, classes in taken(read_set(spec, fitted, name), chosen):
        values.extend(_values(rows, fitted))
        labels.append(classes)
    kept = np.concatenate([np.empty(0, np.int64), *labels])
    is_text = isinstance(fitted.preprocessor.input, TextInput)
    return Sampled(values if is_text else np.array(values), kept, chosen[: len(kept)], total)


def most_rows(fitted: Fitted) -> int:
    """How many rows of a set are worth their time; each takes longer the more classes there are."""
    preprocessor, classes = fitted.preprocessor.input, len(fitted.preprocessor.target.classes)
    if isinstance(preprocessor, TextInput):
        tokens = MOST_TOKENS * FEW_CLASSES // max(classes, FEW_CLASSES)
        return max(1, min(MOST_ROWS, int(tokens / preprocessor.mean_length)))
    assert isinstance(preprocessor, ImageInput)
    step = _step(preprocessor)
    features = -(-preprocessor.height // step) * -(-preprocessor.width // step) * preprocessor.channels
    most = MOST_RESIZED if preprocessor.resize else MOST_ROWS
    return max(1, min(most, MOST_PIXELS // (features * classes)))


def cleaned_texts(rows: Rows, preprocessor: TextInput) -> list[str]:
    """The text of each row, as far as the model could read it."""
    longest = CHARACTERS_PER_TOKEN * preprocessor.max_length
    texts = joined_texts(rows.table, preprocessor.columns, rows.where)
    return [clean(text[:longest], preprocessor.cleaning) for text in texts]


def taken(tables: Iterator[tuple[Rows, np.ndarray | None]], chosen: np.ndarray) -> Iterator[tuple[Rows, np.ndarray]]:
    """Of consecutive rows and their classes those whose places are `chosen`, which is sorted."""
    first = 0
    for rows, labels in tables:
        assert labels is not None, "classifiers are compared on rows with labels"
        start, end = np.searchsorted(chosen, [first, first + len(labels)])
        here = chosen[start:end] - first
        first += len(labels)
        if len(here):
            yield rows.take(here), labels[here]


def _values(rows: Rows, fitted: Fitted) -> list[str] | list[np.ndarray]:
    preprocessor = fitted.preprocessor.input
    if isinstance(preprocessor, TextInput):
        return cleaned_texts(rows, preprocessor)
    assert isinstance(preprocessor, ImageInput)
    pixels = preprocessor.transform(rows.table, rows.where).flatten().to_numpy()
    images = pixels.reshape(-1, preprocessor.height, preprocessor.width, preprocessor.channels)
    step = _step(preprocessor)
    return list(images[:, ::step, ::step].reshape(len(images), -1))


def _step(preprocessor: ImageInput) -> int:
    """Of this many pixels in a row or a column one is taken."""
    return -(-max(preprocessor.height, preprocessor.width) // SIDE)
