from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trainjob.data.first_pass.split import Split, distinct_rows, fit_split, hashes

SETS = st.dictionaries(st.sampled_from("abcd"), st.integers(2, 40), min_size=1)
FRACTIONS = st.floats(0.01, 0.99)


def contents_and_labels(counts: dict[str, int]) -> tuple[list[bytes], np.ndarray]:
    """Distinct rows, so many of each class."""
    names = sorted(counts)
    contents = [f"{name} {index}".encode() for name in names for index in range(counts[name])]
    return contents, np.repeat(np.arange(len(names)), [counts[name] for name in names])


def split_of(contents: list[bytes], labels: np.ndarray, fraction: float, seed: int) -> Split:
    return fit_split(hashes(contents, seed), labels, int(labels.max()) + 1, fraction, seed)


@given(SETS, FRACTIONS, st.integers(0, 2**32 - 1))
def test_every_class_gives_its_share(counts: dict[str, int], fraction: float, seed: int) -> None:
    contents, labels = contents_and_labels(counts)
    split = split_of(contents, labels, fraction, seed)
    is_validation = split.is_validation(hashes(contents, seed), labels)
    for number, count in enumerate(counts[name] for name in sorted(counts)):
        share = int(is_validation[labels == number].sum())
        assert 1 <= share < count
        assert abs(share - min(max(fraction * count, 1), count - 1)) <= 0.5


@given(SETS, FRACTIONS, st.randoms())
def test_the_order_of_rows_does_not_matter(
    counts: dict[str, int], fraction: float, random: np.random.Generator
) -> None:
    contents, labels = contents_and_labels(counts)
    order = list(range(len(contents)))
    random.shuffle(order)
    shuffled = [contents[index] for index in order]
    assert split_of(shuffled, labels[order], fraction, 7) == split_of(contents, labels, fraction, 7)


def test_sides_are_disjoint_and_complete() -> None:
    contents, labels = contents_and_labels({"a": 30, "b": 50})
    split = split_of(contents, labels, 0.3, 1)
    train, validation = split.sides(contents, labels).values()
    assert sorted([*train, *validation]) == list(range(80))


def test_the_seed_picks_the_rows() -> None:
    contents, labels = contents_and_labels({"a": 100, "b": 100})
    picked = [tuple(split_of(contents, labels, 0.2, seed).sides(contents, labels)["validation"]) for seed in (1, 1, 2)]
    assert picked[0] == picked[1]
    assert picked[0] != picked[2]


@given(st.lists(st.integers(0, 8), min_size=2, max_size=60).filter(lambda rows: len(set(rows)) > 1), FRACTIONS)
def test_equal_rows_stay_together(rows: list[int], fraction: float) -> None:
    contents, labels = [str(row).encode() for row in rows], np.zeros(len(rows), np.int64)
    split = split_of(contents, labels, fraction, 3)
    train = {rows[index] for index in split.sides(contents, labels)["train"]}
    validation = {rows[index] for index in split.sides(contents, labels)["validation"]}
    assert train
    assert validation
    assert not train & validation
    # No other cut between groups of equal rows comes nearer to the wanted share.
    group_sizes = Counter(rows)
    ordered = sorted(group_sizes, key=lambda row: hashes([str(row).encode()], 3)[0])
    cuts = np.cumsum([group_sizes[row] for row in ordered])[:-1]
    share = sum(group_sizes[row] for row in validation)
    assert abs(share - fraction * len(rows)) == np.abs(cuts - fraction * len(rows)).min()


def test_hashes_stay_what_they_are() -> None:
    """A run that is resumed with a newer version must not validate on rows that it was trained on."""
    assert hashes([b"some row", b"another"], 258).tolist() == [12351361663257905056, 7426497455076358837]
    assert hashes([], 258).tolist() == []


def test_classes_with_too_few_different_rows_are_not_split() -> None:
    contents, labels = [b"1", b"2", b"x", b"x", b"x", b"3"], np.array([0, 0, 1, 1, 1, 2])
    assert distinct_rows(hashes(contents, 0), labels, 4).tolist() == [2, 1, 1, 0]
    split = fit_split(hashes(contents, 0), labels, 4, 0.2, 0)
    assert not split.is_validation(hashes(contents, 0), labels)[2:].any()
