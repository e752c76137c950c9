"""Pearson's correlation of two numbers a row, from sums over rows. On ranks, it is Spearman's correlation."""

import numpy as np

ROUNDING = 1e-12


def centered(values: np.ndarray) -> np.ndarray:
    """Values float64 [n] minus their mean; exactly 0 where all are equal."""
    return values - (values.mean() if np.ptp(values) > 0 else values)


def centered_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks minus their mean, equal values with the mean of theirs, float64 [n]."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts + 1) / 2)[inverse] - (len(values) - 1) / 2


def moments(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The terms that are summed over rows, [6, n]: one, both centered numbers, their squares and their product."""
    return np.stack([np.ones(len(first)), first, second, first**2, second**2, first * second])


def correlation(sums: np.ndarray) -> np.ndarray:
    """The correlations, [...], of such sums [6, ...]: NaN where the first number is the same in all rows, else 0 where
    the second one is."""
    rows, first, second, first_squares, second_squares, products = sums
    spread = variation(first, first_squares, rows)
    both = np.sqrt(spread * variation(second, second_squares, rows))
    undefined = np.where(spread > 0, 0.0, np.nan)
    return np.clip(ratio(products - first * second / rows, both, otherwise=undefined), -1, 1)


def variation(total: np.ndarray, squares: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The sum of squared deviations from the mean; 0 where only rounding is left."""
    found = squares - total**2 / rows
    return np.where(found > ROUNDING * squares, found, 0.0)


def ratio(numerator: np.ndarray, denominator: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """The ratios; `otherwise` where the denominator is 0."""
    return np.divide(numerator, denominator, out=np.array(otherwise, np.float64), where=np.asarray(denominator > 0))
