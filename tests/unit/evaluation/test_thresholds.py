"""Curves and thresholds of two classes, beside scikit-learn's."""

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    f1_score,
    precision_recall_curve,
    precision_score,
    recall_score,
)

from trainjob.evaluation.thresholds import Metric, best_threshold, precision_recall, value_of, values_at

SKLEARN = {
    "accuracy": accuracy_score,
    "precision": lambda *rows: precision_score(*rows, average="macro", zero_division=0),
    "recall": lambda *rows: recall_score(*rows, average="macro", zero_division=0),
    "f1": lambda *rows: f1_score(*rows, average="macro", zero_division=0, labels=[False, True]),
}


def drawn(rows: int, seed: int, decimals: int) -> tuple[np.ndarray, np.ndarray]:
    """Positive rows tend to have higher scores; with few decimals, many are equal."""
    random = np.random.default_rng(seed)
    is_positive = random.random(rows) < 0.3
    is_positive[0] = True
    return is_positive, np.round(random.beta(2 + 2 * is_positive, 3), decimals)


@pytest.mark.parametrize(("rows", "decimals"), [(1, 3), (2, 3), (50, 1), (500, 2), (500, 9)])
def test_the_curve_is_scikit_learns(rows: int, decimals: int) -> None:
    is_positive, score = drawn(rows, 0, decimals)
    curve = precision_recall(is_positive, score)
    precision, recall, _ = precision_recall_curve(is_positive, score)  # in the order of rising thresholds
    np.testing.assert_allclose(curve.precision, precision[-2::-1])
    np.testing.assert_allclose(curve.recall, recall[-2::-1])
    assert curve.average_precision == pytest.approx(average_precision_score(is_positive, score))


@pytest.mark.parametrize("metric", SKLEARN)
def test_the_metric_is_scikit_learns_at_every_threshold(metric: Metric) -> None:
    is_positive, score = drawn(200, 1, 2)
    thresholds = np.array([0.0, 0.25, 0.5, 0.505, 0.9, 1.0])
    expected = [SKLEARN[metric](is_positive, score >= threshold) for threshold in thresholds]
    np.testing.assert_allclose(values_at(metric, is_positive, score, thresholds), expected)
    for threshold, value in zip(thresholds, expected, strict=True):
        assert value_of(metric, is_positive, score >= threshold) == pytest.approx(value)


@pytest.mark.parametrize("metric", SKLEARN)
@pytest.mark.parametrize("rows", [1, 3, 200])
def test_no_threshold_is_better(metric: Metric, rows: int) -> None:
    is_positive, score = drawn(rows, 2, 3)
    best = best_threshold(metric, is_positive, score)
    value = SKLEARN[metric](is_positive, score >= best)
    assert value == max(SKLEARN[metric](is_positive, score >= each) for each in [0, *score, 0.5, 1, 2])


def test_of_equal_thresholds_the_closest_to_one_half_is_taken() -> None:
    is_positive = np.array([False, False, True, True])
    assert best_threshold("f1", is_positive, np.array([0.1, 0.3, 0.6, 0.9])) == 0.5
    assert best_threshold("f1", is_positive, np.array([0.1, 0.2, 0.3, 0.4])) == 0.25
    assert best_threshold("f1", is_positive, np.array([0.6, 0.7, 0.9, 1.0])) == 0.8
    assert best_threshold("accuracy", np.array([False, False]), np.array([0.7, 1.0])) == 0.85
