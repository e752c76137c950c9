"""Whether the calibration error is what its definition says."""

import numpy as np
import pytest
from scipy.stats import binomtest

from trainjob.evaluation.calibration import BINS, calibration, wilson


def ece_by_definition(probability: np.ndarray, is_right: np.ndarray) -> float:
    """Row by row, without anything of the code under test."""
    total = 0.0
    for number in range(10):
        inside = [i for i, p in enumerate(probability) if number / 10 < p <= (number + 1) / 10]
        if inside:
            accuracy = sum(bool(is_right[i]) for i in inside) / len(inside)
            confidence = sum(float(probability[i]) for i in inside) / len(inside)
            total += len(inside) / len(probability) * abs(accuracy - confidence)
    return total


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("rows", [1, 7, 2000])
def test_the_error_is_that_of_the_definition(classes: int, rows: int) -> None:
    random = np.random.default_rng(rows * classes)
    probabilities = random.dirichlet(np.full(classes, 0.5), rows)
    labels = random.integers(0, classes, rows)
    top, is_right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    found = calibration(top, is_right)
    assert found.error == pytest.approx(ece_by_definition(top, is_right), abs=1e-12)
    assert sum(each.rows for each in found.bins) == rows
    assert found.accuracy == pytest.approx(is_right.mean())
    assert found.probability == pytest.approx(top.mean())


def test_the_ends_of_bins() -> None:
    """A bin holds its upper end and not its lower one; probabilities may be 0 or 1, or over 1 by rounding."""
    found = calibration(
        np.array([0.0, 0.1, 0.5, 0.51, 0.7, 1.0, 1.0000001]), np.array([False, True, True, True, True, True, False])
    )
    assert [each.rows for each in found.bins] == [2, 0, 0, 0, 1, 1, 1, 0, 0, 2]
    assert [each.accuracy for each in found.bins if each.rows] == [0.5, 1.0, 1.0, 1.0, 0.5]
    assert np.isnan(found.bins[1].accuracy)


def test_what_chance_makes_of_the_error_of_perfect_probabilities() -> None:
    random = np.random.default_rng(1)
    probability = random.beta(5, 1, 500)
    drawn = [calibration(probability, random.random(500) < probability) for _ in range(300)]
    assert np.mean([each.error for each in drawn]) == pytest.approx(drawn[0].error_by_chance, rel=0.05)
    assert np.mean([each.bias is None for each in drawn]) == pytest.approx(0.95, abs=0.03)
    surer = calibration(np.minimum(1.0, probability + 0.2), random.random(500) < probability)
    assert surer.error > 3 * surer.error_by_chance
    assert surer.bias == "too high"
    assert calibration(probability / 2, random.random(500) < probability).bias == "too low"


def test_certainty_is_no_error() -> None:
    found = calibration(np.ones(5), np.ones(5, bool))
    assert (found.error, found.error_by_chance, len(found.bins)) == (0.0, 0.0, BINS)
    assert (found.bins[-1].accuracy_low, found.bins[-1].accuracy_high) == (pytest.approx(0.5655, abs=1e-3), 1.0)


@pytest.mark.parametrize(("right", "rows"), [(0, 1), (1, 1), (3, 10), (500, 1000), (1000, 1000)])
def test_the_interval_is_wilsons(right: int, rows: int) -> None:
    expected = binomtest(right, rows).proportion_ci(0.95, "wilson")
    assert wilson(right, rows) == pytest.approx((expected.low, expected.high), abs=1e-4)
