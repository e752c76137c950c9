"""Confidence intervals of scores, and comparisons of two classifiers."""

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import accuracy_score, f1_score

from trainjob.evaluation import Confusion, classification_scores
from trainjob.evaluation.paired import estimate_from_confusion, estimate_scores, lead, mcnemar


def guesses(rows: int, classes: int, right: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels and predictions, so many of which are right, and some more by chance."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, rows)
    return labels, np.where(random.random(rows) < right, labels, random.integers(0, classes, rows))


def test_the_values_are_those_of_the_scores() -> None:
    labels, predicted = guesses(500, 6, 0.4)
    confusion = np.zeros((7, 7), np.int64)  # no row is of the last class
    np.add.at(confusion, (labels, predicted), 1)
    expected = classification_scores(Confusion.of_matrix(confusion), 1.0, list("abcdefg"))
    found = estimate_scores(labels, predicted, 7)
    assert found.accuracy.value == pytest.approx(expected.accuracy)
    assert found.f1.value == pytest.approx(expected.macro.f1)
    again = estimate_from_confusion(expected.confusion, 7)
    assert again.f1.value == pytest.approx(expected.macro.f1)
    assert again.f1.low == pytest.approx(found.f1.low)


def test_the_interval_is_that_of_drawing_rows() -> None:
    labels, predicted = guesses(300, 3, 0.5)
    random = np.random.default_rng(1)
    drawn = [random.integers(0, 300, 300) for _ in range(500)]
    for name, measure in (
        ("accuracy", accuracy_score),
        ("f1", lambda labels, predicted: f1_score(labels, predicted, average="macro")),
    ):
        low, high = np.quantile([measure(labels[rows], predicted[rows]) for rows in drawn], [0.025, 0.975])
        found = getattr(estimate_scores(labels, predicted, 3), name)
        assert found.low == pytest.approx(low, abs=0.012)
        assert found.high == pytest.approx(high, abs=0.012)
        assert found.low < found.value < found.high


def test_a_class_of_one_row_does_not_pull_the_interval_below_the_score() -> None:
    """Every third sample lacks that row; all is predicted rightly, so that no sample is worse than the whole."""
    labels = np.array([0] * 20 + [1])
    assert estimate_scores(labels, labels, 2).f1.low == 1.0


def test_a_prediction_of_no_class_is_wrong() -> None:
    labels = np.array([0, 0, 1, 1])
    found = estimate_scores(labels, np.array([0, 2, 1, 2]), 2)
    assert found.accuracy.value == 0.5
    assert found.f1.value == pytest.approx(2 / 3)


@pytest.mark.parametrize(("first", "second"), [(0, 0), (3, 3), (0, 1), (0, 9), (9, 0), (14, 5), (400, 300), (0, 5000)])
def test_mcnemars_test_is_that_of_a_fair_coin(first: int, second: int) -> None:
    expected = binomtest(first, first + second).pvalue if first + second else 1.0
    assert mcnemar(first, second) == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_a_clear_lead_is_told_from_luck() -> None:
    labels, good = guesses(400, 4, 0.9)
    poor, other = guesses(400, 4, 0.5)[1], guesses(400, 4, 0.9, seed=0)[1]
    other[:3] = labels[:3]
    assert lead(labels, good, poor, 4).verdict == "better"
    assert lead(labels, poor, good, 4).verdict == "worse"
    assert lead(labels, good, other, 4).verdict == "no clear difference"
    ahead = lead(labels, good, poor, 4)
    assert ahead.f1.low > 0
    difference = estimate_scores(labels, good, 4).f1.value - estimate_scores(labels, poor, 4).f1.value
    assert ahead.f1.value == pytest.approx(difference)
    assert ahead.only_first - ahead.only_second == np.sum(good == labels) - np.sum(poor == labels)


def test_the_same_predictions_lead_by_nothing() -> None:
    labels, predicted = guesses(50, 3, 0.5)
    same = lead(labels, predicted, predicted, 3)
    assert (same.f1.low, same.f1.value, same.f1.high, same.p) == (0, 0, 0, 1)


def test_the_interval_of_f1_decides_where_accuracies_are_equal() -> None:
    labels = np.repeat([0, 1], [1000, 40])
    first, second = labels.copy(), labels.copy()
    first[:30], second[-30:] = 1, 0  # the one is wrong about frequent rows, the other about as many rare ones
    ahead, behind = lead(labels, first, second, 2), lead(labels, second, first, 2)
    assert ahead.p == 1.0
    assert (ahead.f1.low > 0, ahead.verdict) == (True, "better")
    assert (behind.f1.high < 0, behind.verdict) == (True, "worse")


@pytest.mark.parametrize(("rows", "verdict"), [(5, "no clear difference"), (6, "better")])
def test_a_handful_of_rows_proves_nothing(rows: int, verdict: str) -> None:
    labels = np.arange(20) % 2
    second = labels.copy()
    second[:rows] = 1 - labels[:rows]
    found = lead(labels, labels, second, 2)
    assert found.verdict == verdict
    assert (found.f1.low <= 0) == (found.accuracy.low <= 0) == (rows < 6)


def test_one_row_is_enough() -> None:
    labels = np.array([1])
    assert estimate_scores(labels, labels, 3).accuracy.low == 1.0
    assert lead(labels, labels, np.array([0]), 3).p == 1.0
