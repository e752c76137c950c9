"""Two classes: precision and recall at each threshold, and the best threshold by a metric.

The positive class is predicted where its score, float64 [n], is at least the threshold; `is_positive`, bool [n], marks
the rows of the positive class.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

Metric = Literal["accuracy", "precision", "recall", "f1", "positive_f1"]
"""Precision, recall and F1 are means over the two classes, the last one is F1 of the positive class."""
USUAL = 0.5
DECIMALS = 6
"""The decimals of a threshold."""


@dataclass(frozen=True)
class Curve:
    """Precision over recall as the threshold falls, both float64 [k], a point for each distinct score."""

    recall: np.ndarray
    precision: np.ndarray

    @property
    def average_precision(self) -> float:
        """The mean of the precisions, each weighted by how much recall its threshold adds."""
        return float(np.sum(np.diff(self.recall, prepend=0.0) * self.precision))


def precision_recall(is_positive: np.ndarray, score: np.ndarray) -> Curve:
    """The curve of rows, at least one of which is positive."""
    order = np.argsort(-score, kind="stable")
    last = np.flatnonzero(np.diff(score[order], append=-np.inf))  # of each distinct score
    hits = np.cumsum(is_positive[order])[last]
    return Curve(hits / is_positive.sum(), hits / (last + 1))


def best_threshold(metric: Metric, is_positive: np.ndarray, score: np.ndarray) -> float:
    """The threshold at which the metric is highest; of several, the one closest to one half. It lies in the middle
    between two scores, or is one half."""
    ends = np.unique(np.concatenate([[0.0], score, [1.0]]))
    candidates = np.unique(np.append(np.round((ends[:-1] + ends[1:]) / 2, DECIMALS), USUAL))
    values = values_at(metric, is_positive, score, candidates)
    best = candidates[values == values.max()]
    return float(best[np.argmin(np.abs(best - USUAL))])


def values_at(metric: Metric, is_positive: np.ndarray, score: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """The metric at each of the thresholds float64 [t], float64 [t]."""
    order = np.argsort(score, kind="stable")
    below = np.searchsorted(score[order], thresholds)  # rows that are predicted negative
    positives_below = np.append(0, np.cumsum(is_positive[order]))[below]
    right_positives = is_positive.sum() - positives_below
    return _values(metric, is_positive.sum(), len(score), right_positives, below - positives_below, len(score) - below)


def value_of(metric: Metric, is_positive: np.ndarray, predicted: np.ndarray) -> float:
    """The metric of predictions, True for the positive class, bool [n]."""
    return float(values_at(metric, is_positive, predicted.astype(np.float64), np.array([USUAL]))[0])


def _values(
    metric: Metric,
    positives: int,
    rows: int,
    true_positives: np.ndarray,
    true_negatives: np.ndarray,
    predicted: np.ndarray,
) -> np.ndarray:
    """The metric from counts of rows. `predicted` counts rows that are predicted to be positive."""
    if metric == "accuracy":
        return (true_positives + true_negatives) / rows
    if metric == "positive_f1":
        return _ratio(2 * true_positives, predicted + positives)
    negatives, others = rows - positives, rows - predicted
    if metric == "precision":
        return (_ratio(true_positives, predicted) + _ratio(true_negatives, others)) / 2
    if metric == "recall":
        return (_ratio(true_positives, positives) + _ratio(true_negatives, negatives)) / 2
    return (_ratio(2 * true_positives, predicted + positives) + _ratio(2 * true_negatives, others + negatives)) / 2


def _ratio(numerator: np.ndarray, denominator: np.ndarray | int) -> np.ndarray:
    """The ratio, or 0 where the denominator is 0, as in scores/classes.py."""
    numerator, denominator = np.broadcast_arrays(np.asarray(numerator, np.float64), denominator)
    return np.divide(numerator, denominator, out=np.zeros(numerator.shape), where=denominator > 0)
