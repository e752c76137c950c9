"""`function.config` stays as the RayJob was created with: the API server admits any change of it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from operator_objects import trainjob
from test_job_pods import SETTINGS

from trainjob.api import TrainJob
from trainjob_operator.errors import RayJobError
from trainjob_operator.render import render
from trainjob_operator.snapshot import MAX_SNAPSHOT_BYTES, keep_config

values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def with_config(config: dict[str, Any] | None, **spec: Any) -> TrainJob:
    return trainjob(model={"function": {"name": "a:b"} | ({} if config is None else {"config": config})}, **spec)


@given(st.dictionaries(st.text(), values, max_size=4))
def test_an_unchanged_config_is_read_back_as_it_was(config: dict[str, Any]):
    job = with_config(config)
    assert keep_config(job, render(job, SETTINGS)) == (job, None)


@pytest.mark.parametrize(("config", "later"), [(None, None), ({}, {}), (None, {}), ({}, None), ({"a": 1}, {"a": 1})])
def test_a_job_whose_config_has_not_changed_is_rendered_as_it_was(
    config: dict[str, Any] | None, later: dict[str, Any] | None
):
    ray_job = render(with_config(config), SETTINGS)
    job, error = keep_config(with_config(later), ray_job)
    assert error is None
    if config == later:
        assert render(job, SETTINGS) == ray_job


def test_a_config_that_is_added_later_is_refused():
    job, error = keep_config(with_config({"lr": 1}), render(with_config(None), SETTINGS))
    assert job.spec.model.function is not None
    assert job.spec.model.function.config == {}
    assert error is not None


@pytest.mark.parametrize("changed", [{"rate": 5}, {"lr": 1.5}, {"lr": True}, {}, None, {"lr": 1, "more": None}])
def test_a_changed_config_is_refused_and_the_old_one_kept(changed: dict[str, Any] | None):
    ray_job = render(with_config({"lr": 1}), SETTINGS)
    job, error = keep_config(with_config(changed, suspend=True, retries=2), ray_job)
    assert job.spec.model.function is not None
    assert job.spec.model.function.config == {"lr": 1}
    assert error is not None
    assert (error.reason, "spec.model.function.config" in str(error)) == ("ConfigChanged", True)
    assert (job.spec.suspend, job.spec.retries) == (True, 2)


def test_a_config_in_another_order_is_the_same():
    first, second = with_config({"a": 1, "b": {"c": 2, "d": 3}}), with_config({"b": {"d": 3, "c": 2}, "a": 1})
    job, error = keep_config(second, render(first, SETTINGS))
    assert error is None
    assert render(job, SETTINGS) == render(first, SETTINGS)


@pytest.mark.parametrize("snapshot", ["", "[", "- a", "spec: 1", "spec: {model: {function: {config: 1}}}", None])
def test_an_unreadable_snapshot_gives_way_to_the_trainjob(snapshot: str | None):
    job = with_config({"lr": 1})
    ray_job = render(job, SETTINGS)
    annotations = ray_job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["metadata"]["annotations"]
    annotations["trainjob.dev/trainjob"] = snapshot
    assert keep_config(job, ray_job) == keep_config(job, {"spec": {}}) == keep_config(job, None) == (job, None)


@pytest.mark.parametrize(
    ("what", "large"),
    [
        ("function.config", {"model": {"function": {"name": "a:b", "config": {"a": "ü" * (MAX_SNAPSHOT_BYTES // 2)}}}}),
        ("function.config", {"model": {"function": {"name": "a:b", "config": {"a": [1] * MAX_SNAPSHOT_BYTES}}}}),
        ("pods", {"pods": {"env": [{"name": "A", "value": "x" * MAX_SNAPSHOT_BYTES}]}}),
    ],
)
def test_a_spec_that_is_too_large_is_refused(what: str, large: dict[str, Any]):
    with pytest.raises(RayJobError, match=f"more than {MAX_SNAPSHOT_BYTES} bytes: shorten {what}") as refused:
        render(trainjob(**large), SETTINGS)
    assert refused.value.reason == "SpecTooLarge"
