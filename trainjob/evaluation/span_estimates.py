"""Confidence intervals of the scores of found spans, and of one model's lead over another on the same texts.

A found span is right if its start, end and type are those of a true one. For the partial scores, a span of the right
type that overlaps a true one, and is not right, counts half; each true span counts once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from trainjob.evaluation.estimates import SAMPLES, Estimate, Lead, ScoreEstimates, sorted_rows, with_intervals
from trainjob.schema.spans import Span, parsed

NAMES = ("f1", "precision", "recall", "partial_f1")


class SpanEstimates(ScoreEstimates):
    """Estimates of the scores of found spans, over all types (micro-averaged)."""

    main_field: ClassVar[str] = "f1"

    f1: Estimate
    """Harmonic mean of precision and recall."""
    precision: Estimate
    """Share of the found spans that are right."""
    recall: Estimate
    """Share of the true spans that are found."""
    partial_f1: Estimate
    """F1 where an overlap with a true span of the type counts half."""


class SpanLead(Lead):
    """How much better the first model finds spans than the second in the same texts."""

    main_field: ClassVar[str] = "f1"

    f1: Estimate
    """F1 of the first one minus that of the second."""
    partial_f1: Estimate
    """Partial F1 of the first one minus that of the second."""


@dataclass(frozen=True)
class SpanJudge:
    """Compares spans in JSON, as `trainjob.data.read.spans.written` writes them, objects [n]."""

    def values(self, column: pa.ChunkedArray) -> np.ndarray:
        found = np.empty(len(column), object)
        found[:] = column.to_pylist()
        return found

    def table(
        self, rows: np.ndarray, predicted: np.ndarray, probabilities: np.ndarray | None, tokens: np.ndarray | None
    ) -> pa.Table:
        return pa.table({"row": rows, "prediction": pa.array(predicted.tolist(), pa.string())})

    def estimates(self, labels: np.ndarray, predicted: np.ndarray) -> SpanEstimates:
        (counts,) = sorted_rows(counts_of_rows(labels, predicted))
        values, samples = scores_of(counts.sum(axis=0)), scores_of(_samples([counts])[0])
        return SpanEstimates(**with_intervals(values, samples, NAMES))

    def lead(self, labels: np.ndarray, first: np.ndarray, second: np.ndarray) -> SpanLead:
        pair = [counts_of_rows(labels, each) for each in (first, second)]
        one, other = (scores_of(each.sum(axis=0)) for each in pair)
        one_drawn, other_drawn = map(scores_of, _samples(pair))
        kept = [NAMES.index("f1"), NAMES.index("partial_f1")]
        return SpanLead(**with_intervals((one - other)[kept], (one_drawn - other_drawn)[kept], ("f1", "partial_f1")))


def counts_of(true: Sequence[Span], found: Sequence[Span]) -> tuple[int, int, int, int]:
    """Right spans, other spans of the right type that overlap a true one, found and true spans."""
    right = set(true) & set(found)
    missed = sorted(set(true) - right)
    partial = 0
    for start, end, kind in sorted(set(found) - right):
        overlapped = next((span for span in missed if span[2] == kind and span[0] < end and start < span[1]), None)
        if overlapped is not None:
            missed.remove(overlapped)  # each true span counts once
            partial += 1
    return len(right), partial, len(found), len(true)


def counts_of_rows(labels: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """`counts_of` for each row, int64 [n, 4]."""
    pairs = zip(labels, predicted, strict=True)
    counts = [counts_of(parsed(label), parsed(prediction)) for label, prediction in pairs]
    return np.array(counts, np.int64).reshape(-1, 4)


def counts_by_type(labels: np.ndarray, predicted: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Each type with its counts over all rows, int64 [4]."""
    sums: dict[str, np.ndarray] = {}
    for label, prediction in zip(labels, predicted, strict=True):
        true, found = parsed(label), parsed(prediction)
        for kind in {span[2] for span in (*true, *found)}:
            of_kind = [[span for span in spans if span[2] == kind] for spans in (true, found)]
            sums[kind] = sums.get(kind, np.zeros(4, np.int64)) + counts_of(*of_kind)
    yield from sorted(sums.items())


def scores_of(counts: np.ndarray) -> np.ndarray:
    """F1, precision, recall and partial F1, [4, ...], of counts [..., 4]. Without true and found spans, all are 1."""
    right, partial, found, true = np.moveaxis(np.asarray(counts, np.float64), -1, 0)
    is_empty = (found + true) == 0
    f1 = _share(2 * right, found + true, is_empty)
    partial_f1 = _share(2 * (right + partial / 2), found + true, is_empty)
    return np.stack([f1, _share(right, found, is_empty), _share(right, true, is_empty), partial_f1])


def _share(part: np.ndarray, whole: np.ndarray, is_empty: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.asarray(is_empty, np.float64).copy(), where=np.asarray(whole > 0))


def _samples(counts: list[np.ndarray]) -> list[np.ndarray]:
    """The sums of counts [n, 4] in each bootstrap sample of the rows, [SAMPLES, 4]; the same samples for each."""
    random, rows = np.random.default_rng(0), len(counts[0])
    sums = [np.empty((SAMPLES, 4)) for _ in counts]
    for number in range(SAMPLES):
        drawn = random.multinomial(rows, np.full(rows, 1 / rows))
        for each, own in zip(sums, counts, strict=True):
            each[number] = drawn @ own
    return sums
