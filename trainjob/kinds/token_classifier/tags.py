"""Spans as tags of tokens, and back: O, or for each type B at the first token of a span and I at the others (BIO)."""

from collections.abc import Iterator, Sequence

import numpy as np

from trainjob.schema.spans import Span


def tag_names(types: Sequence[str]) -> list[str]:
    return ["O", *(f"{prefix}-{kind}" for kind in types for prefix in "BI")]


def tags_of(spans: Sequence[Span], starts: np.ndarray, ends: np.ndarray, types: Sequence[str]) -> np.ndarray:
    """The tag of each token, int32 [t]. A token that a span covers in part belongs to it; one that two spans share
    belongs to the first."""
    tags = np.zeros(len(starts), np.int32)
    taken = 0
    for start, end, kind in spans:
        first = max(int(np.searchsorted(ends, start, side="right")), taken)
        last = int(np.searchsorted(starts, end, side="left"))
        if first < last:
            number = 1 + 2 * types.index(kind)
            tags[first:last], tags[first], taken = number + 1, number, last
    return tags


def runs_of(tags: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """The first token, the end and the number of the type of each span. A span also begins where I follows another type
    or O, as seqeval reads it."""
    start, kind = 0, -1
    for position, tag in enumerate([*tags.tolist(), 0]):
        current = (tag - 1) // 2 if tag else -1
        if kind >= 0 and (current != kind or tag % 2):
            yield start, position, kind
            kind = -1
        if current >= 0 and kind < 0:
            start, kind = position, current
