"""The rows that baselines learn from and are scored on, before tokenization."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa

from trainjob.api import TrainJobSpec
from trainjob.data import Fitted
from trainjob.data.batches.prepare import read_set
from trainjob.data.read.rows import Rows

MAX_ROWS = 50_000


@dataclass(frozen=True)
class Sampled:
    """Rows of a set, all or a random sample, in the set's order."""

    values: list[str] | np.ndarray | pa.Table
    """Cleaned texts, pixels uint8 [n, features], or the columns of a table."""
    labels: np.ndarray
    """[n, ...]."""
    rows: np.ndarray
    """Indices of the rows in the set, int64 [n]."""
    of_rows: int
    """The number of rows in the set."""


def sample(spec: TrainJobSpec, fitted: Fitted, name: str) -> Sampled:
    """Draws rows of the set `name` with the training's seed, at most as many as a baseline learns from in seconds.

    Raises DataError for rows that cannot be used, StorageError if they cannot be read.
    """
    total = fitted.rows[name]
    chosen = drawn(total, most_rows(fitted), spec.training.seed)
    values: list[list[str] | np.ndarray | pa.Table] = []
    labels: list[np.ndarray] = []
    for rows, own in taken(read_set(spec, fitted, name), chosen):
        values.append(fitted.preprocessor.input.plain(rows))
        labels.append(own)
    joined = np.concatenate(labels) if labels else np.empty(0, np.int64)
    return Sampled(_joined(values), joined, chosen[: len(joined)], total)


def most_rows(fitted: Fitted) -> int:
    """The most rows of a set that a baseline learns from in seconds; more classes make each row slower."""
    preprocessor = fitted.preprocessor
    return max(1, min(MAX_ROWS, preprocessor.input.most_plain_rows(preprocessor.target.width)))


def drawn(total: int, most: int, seed: int) -> np.ndarray:
    """Draws at most `most` of the indices below `total`, by the seed: sorted, int64 [m]."""
    if total <= most:
        return np.arange(total)
    return np.sort(np.random.default_rng(seed).choice(total, most, replace=False))


def taken(tables: Iterator[tuple[Rows, np.ndarray | None]], chosen: np.ndarray) -> Iterator[tuple[Rows, np.ndarray]]:
    """Selects the rows at the sorted indices `chosen` from consecutive rows and their labels [n, ...]."""
    first = 0
    for rows, labels in tables:
        assert labels is not None, "models are compared on rows with labels"
        start, end = np.searchsorted(chosen, [first, first + len(labels)])
        here = chosen[start:end] - first
        first += len(labels)
        if len(here):
            yield rows.take(here), labels[here]


def _joined(values: "list[list[str] | np.ndarray | pa.Table]") -> list[str] | np.ndarray | pa.Table:
    texts = [each for each in values if isinstance(each, list)]
    arrays = [each for each in values if isinstance(each, np.ndarray)]
    tables = [each for each in values if isinstance(each, pa.Table)]
    if tables:
        return pa.concat_tables(tables).combine_chunks()
    return np.concatenate(arrays) if arrays else list(chain.from_iterable(texts))
