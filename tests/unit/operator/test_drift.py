from typing import Any

import pytest

from trainjob_operator.drift import first_drift, has_drifted

CONTAINERS = [{"name": "ray", "image": "one"}]


@pytest.mark.parametrize(
    ("actual", "desired"),
    [
        ({}, {}),
        ({"a": 1}, {}),
        ({"a": 1, "theirs": 2}, {"a": 1}),
        ({"a": {"b": [1, 2], "theirs": {}}}, {"a": {"b": [1, 2]}}),
        ({}, {"a": None}),
        ({}, {"a": []}),
        ({"a": False}, {"a": False}),
        ([{"key": "gpu", "theirs": 1}], [{"key": "gpu"}]),
        ([{"name": "sidecar"}, *CONTAINERS], CONTAINERS),
        ([{"name": "ray", "image": "one", "theirs": 1}], CONTAINERS),
        ([{"name": "b"}, {"name": "a"}], [{"name": "a"}, {"name": "b"}]),
    ],
)
def test_what_others_add_does_not_count(actual: Any, desired: Any):
    assert not has_drifted(actual, desired)


@pytest.mark.parametrize(
    ("actual", "desired"),
    [
        (None, {"a": 1}),
        ({}, {"a": 1}),
        ({"a": 2}, {"a": 1}),
        ({"a": "1"}, {"a": 1}),
        ({"a": 1}, {"a": {"b": 1}}),
        ({"a": {"b": 1}}, {"a": {"b": 2}}),
        ({"a": None}, {"a": False}),
        ([], [1]),
        (None, [1]),
        ([1, 2], [1]),
        ([2, 1], [1, 2]),
        ([{"key": "a"}, {"key": "b"}], [{"key": "a"}]),
        ([{"name": "sidecar"}], CONTAINERS),
        ([{"name": "ray", "image": "two"}], CONTAINERS),
        ([], CONTAINERS),
    ],
)
def test_what_was_changed_or_taken_away_counts(actual: Any, desired: Any):
    assert has_drifted(actual, desired)


@pytest.mark.parametrize(
    ("actual", "desired", "path"),
    [
        ({"a": 1}, {"a": 1}, None),
        ({"a": {"b": [CONTAINERS, CONTAINERS]}}, {"a": {"b": [CONTAINERS, [{"name": "ray"}]]}}, None),
        ({"a": {"b": 1, "c": 3}}, {"a": {"b": 1, "c": 2}}, "a.c"),
        ({"pods": [{"name": "sidecar"}]}, {"pods": CONTAINERS}, "pods[ray]"),
        ({"pods": [{"name": "ray", "image": "two"}]}, {"pods": CONTAINERS}, "pods[ray].image"),
        ({"a": [[1], [2]]}, {"a": [[1], [3]]}, "a[1][0]"),
        ({"a": [1]}, {"a": [1, 2]}, "a"),
        (None, {"a": 1}, ""),
        ({}, {"a": {"b": 1}}, "a"),
    ],
)
def test_the_first_field_that_has_drifted_is_named(actual: Any, desired: Any, path: str | None):
    assert first_drift(actual, desired) == path
