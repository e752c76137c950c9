"""An order of rows in which those of a stratum, such as a class, follow each other in small groups."""

import numpy as np


def in_groups(
    order: np.ndarray, strata: np.ndarray, least: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The rows in a random order of groups, and the number of each row's group, ascending, both int64 [n].

    The rows of a stratum are divided, as they follow each other in `order`, int64 [n], into groups of `least` rows, the
    last of which takes up to `least - 1` more. A stratum with fewer rows is one group. `strata` [n] has the stratum of
    each row.
    """
    by_stratum = order[np.argsort(strata[order], kind="stable")]
    _, starts, rows = np.unique(strata[by_stratum], return_index=True, return_counts=True)
    groups = np.maximum(rows // least, 1)
    within = np.arange(len(order)) - np.repeat(starts, rows)
    number = np.minimum(within // least, np.repeat(groups, rows) - 1) + np.repeat(np.cumsum(groups) - groups, rows)
    place = random.permutation(int(groups.sum()))[number]
    found = np.argsort(place, kind="stable")
    return by_stratum[found], place[found]


def longest_of_groups(lengths: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The largest of the `lengths` [n] in each row's group, [n]. `groups` [n] ascend."""
    _, starts, rows = np.unique(groups, return_index=True, return_counts=True)
    return np.repeat(np.maximum.reduceat(lengths, starts), rows)
