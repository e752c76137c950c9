"""Confidence intervals of a classifier's scores, and of its lead over another classifier on the same rows.

Rows that have the same label and predictions are exchangeable, so a sample is drawn as counts of such cells.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from trainjob.evaluation.confusion import Confusion
from trainjob.evaluation.estimates import SAMPLES, Estimate, Lead, ScoreEstimates, with_intervals
from trainjob.evaluation.predictions import prediction_table

BLOCK = 2**20
"""The approximate number of counts, or of classes, in the samples that are drawn at a time."""
MIN_ROWS = 6
"""A classifier is called better only if at least this many rows are right for exactly one of the two. Five tosses of a
fair coin all fall to the same side with a probability of 1/16, and a bootstrap of as few rows is overconfident."""


class ClassEstimates(ScoreEstimates):
    """Estimates of a classifier's scores."""

    main_field: ClassVar[str] = "f1"

    accuracy: Estimate
    """Fraction of rows for which the right class is predicted."""
    f1: Estimate
    """F1, the mean over classes."""

    @property
    def headings(self) -> tuple[str, ...]:
        return ("Accuracy", "F1, macro average")


class ClassLead(Lead):
    """How much better the first classifier is than the second on the same rows. The intervals include 0 if the two
    models differ on fewer than MIN_ROWS rows."""

    main_field: ClassVar[str] = "f1"

    accuracy: Estimate
    """Difference in accuracy."""
    f1: Estimate
    """Difference in F1, the mean over classes."""
    only_first: int
    """Rows that only the first one predicts correctly."""
    only_second: int
    """Rows that only the second one predicts correctly."""
    p: float
    """McNemar's exact test of the accuracies: how probable it is that chance alone divides these rows at least so
    unevenly."""


@dataclass(frozen=True)
class ClassJudge:
    """Compares class indices, int64 [n]; a prediction that is none of the classes has the number of classes."""

    classes: list[str]

    def values(self, column: pa.ChunkedArray) -> np.ndarray:
        numbers = {name: number for number, name in enumerate(self.classes)}
        return np.array([numbers.get(name, len(self.classes)) for name in column.to_pylist()], np.int64)

    def table(
        self, rows: np.ndarray, predicted: np.ndarray, probabilities: np.ndarray | None, tokens: np.ndarray | None
    ) -> pa.Table:
        return prediction_table(rows, predicted, self.classes, probabilities, tokens=tokens)

    def estimates(self, labels: np.ndarray, predicted: np.ndarray) -> ClassEstimates:
        return estimate_scores(labels, predicted, len(self.classes))

    def lead(self, labels: np.ndarray, first: np.ndarray, second: np.ndarray) -> ClassLead:
        return lead(labels, first, second, len(self.classes))


def estimate_scores(labels: np.ndarray, predicted: np.ndarray, classes: int) -> ClassEstimates:
    """The scores of predictions int64 [n] for labels int64 [n], which are below `classes`; a prediction that is not
    counts as wrong."""
    values, samples = _bootstrap(labels, [predicted], classes)
    return ClassEstimates(**with_intervals(values[0], samples[:, 0].T, ("accuracy", "f1")))


def estimate_from_confusion(confusion: Confusion, classes: int) -> ClassEstimates:
    """The scores of a confusion matrix."""
    pairs = np.array([confusion.true, confusion.predicted], np.int64)
    labels, predicted = pairs.repeat(confusion.rows, axis=1)
    return estimate_scores(labels, predicted, classes)


def lead(labels: np.ndarray, first: np.ndarray, second: np.ndarray, classes: int) -> ClassLead:
    """The lead of the predictions `first` over `second`, with the same types as in `estimate_scores`."""
    values, samples = _bootstrap(labels, [first, second], classes)
    only_first = int(np.sum((first == labels) & (second != labels)))
    only_second = int(np.sum((first != labels) & (second == labels)))
    estimates = with_intervals(values[0] - values[1], (samples[:, 0] - samples[:, 1]).T, ("accuracy", "f1"))
    if only_first + only_second < MIN_ROWS:
        estimates = {name: holding_zero(estimate) for name, estimate in estimates.items()}
    p = mcnemar(only_first, only_second)
    return ClassLead(
        accuracy=estimates["accuracy"], f1=estimates["f1"], only_first=only_first, only_second=only_second, p=p
    )


def mcnemar(only_first: int, only_second: int) -> float:
    """The probability that a fair coin, tossed for each of the rows, lands at least this unevenly on either side."""
    throws, fewer = only_first + only_second, min(only_first, only_second)
    if 2 * fewer == throws:
        return 1.0
    ways = math.lgamma(throws + 1) - throws * math.log(2)
    tail = sum(math.exp(ways - math.lgamma(k + 1) - math.lgamma(throws - k + 1)) for k in range(fewer + 1))
    return min(1.0, 2 * tail)


def _bootstrap(labels: np.ndarray, predictions: list[np.ndarray], classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Accuracy and macro F1 of each of the predictions: on all rows [k, 2] and on each sample [SAMPLES, k, 2]."""
    cells, counts = np.unique(np.stack([labels, *predictions]), axis=1, return_counts=True)
    random, block = np.random.default_rng(0), max(1, BLOCK // max(len(counts), classes))
    empty = [classes - len(np.union1d(cells[0], each[each < classes])) for each in cells[1:]]

    def measured(counts: np.ndarray) -> np.ndarray:
        pairs = zip(cells[1:], empty, strict=True)
        return np.stack([_measures(cells[0], each, counts, classes, without) for each, without in pairs], axis=1)

    sizes = [min(block, SAMPLES - start) for start in range(0, SAMPLES, block)]
    draws = (random.multinomial(len(labels), counts / len(labels), size) for size in sizes)
    return measured(counts[None])[0], np.concatenate([measured(drawn) for drawn in draws])


def _measures(labels: np.ndarray, predicted: np.ndarray, counts: np.ndarray, classes: int, empty: int) -> np.ndarray:
    """Accuracy and macro F1 [samples, 2] of cells [m] with these `counts` in each sample, [samples, m]. A class that a
    sample happens to lack, as true and as predicted class, does not count in its macro F1. The `empty` classes, which
    no row has at all, count as 0."""
    right = labels == predicted
    both = _sums(counts, labels, classes) + _sums(counts, predicted, classes + 1)[:, :classes]
    hits = _sums(counts[:, right], labels[right], classes)
    f1 = np.divide(2 * hits, both, out=np.zeros(both.shape), where=both > 0)
    accuracy = hits.sum(axis=1) / counts.sum(axis=1)
    return np.stack([accuracy, f1.sum(axis=1) / (np.sum(both > 0, axis=1) + empty)], axis=1)


def _sums(counts: np.ndarray, groups: np.ndarray, number: int) -> np.ndarray:
    """Adds up the columns of each group: counts int64 [samples, m] of groups int64 [m] give int64 [samples, number]."""
    order = np.argsort(groups, kind="stable")
    found, starts = np.unique(groups[order], return_index=True)
    sums = np.zeros((len(counts), number), np.int64)
    if len(found):
        sums[:, found] = np.add.reduceat(counts[:, order], starts, axis=1)
    return sums


def holding_zero(estimate: Estimate) -> Estimate:
    return Estimate(value=estimate.value, low=min(estimate.low, 0.0), high=max(estimate.high, 0.0))
