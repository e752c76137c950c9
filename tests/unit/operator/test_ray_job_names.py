import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_plane.small_strategies import trainjob_names
from soak import examples
from trainjob_operator.names import ray_job_name

DNS_1035 = r"[a-z]([-a-z0-9]*[a-z0-9])?"


@pytest.mark.parametrize("name", ["a", "job", "bert-base-2", "a" * 47])
def test_a_name_that_kuberay_takes_stays_as_it_is(name: str):
    assert ray_job_name(name) == name


@pytest.mark.parametrize(
    ("name", "readable"),
    [
        ("0", "tj-0-"),
        ("2024-run", "tj-2024-run-"),
        ("bert.v1", "tj-bert-v1-"),
        ("a" * 48, f"tj-{'a' * 35}-"),
        ("a" * 34 + ".b" * 100, f"tj-{'a' * 34}-"),
        ("x" * 253, f"tj-{'x' * 35}-"),
    ],
)
def test_any_other_name_stays_readable_and_gets_a_digest(name: str, readable: str):
    assert re.fullmatch(re.escape(readable) + "[0-9a-f]{8}", ray_job_name(name))


def test_a_name_is_the_same_in_every_process():
    assert ray_job_name("bert.v1") == "tj-bert-v1-f8e371cc"


@given(trainjob_names())
def test_kuberay_takes_the_rayjob_of_any_trainjob(name: str):
    found = ray_job_name(name)
    assert len(found) <= 47
    assert re.fullmatch(DNS_1035, found)


@examples(10)
@given(st.sets(trainjob_names(), min_size=50, max_size=200))
def test_two_trainjobs_never_share_a_name(names: set[str]):
    assert len({ray_job_name(name) for name in names}) == len(names)


def test_long_names_that_differ_only_at_the_end_do_not_share_a_name():
    names = {f"{'sweep-' * 30}{number}" for number in range(5000)}
    assert len({ray_job_name(name) for name in names}) == len(names)
