"""What several folders of tests share."""

from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

from cluster.client import Cluster
from cluster.jobs import new_namespace
from soak import SOAK

pytest.register_assert_rewrite("folder_contract", "ownership")

settings.register_profile("usual", deadline=None, derandomize=True, max_examples=300)
settings.register_profile("soak", deadline=None, max_examples=10_000)
settings.load_profile("soak" if SOAK else "usual")

LIMITS = {"unit": 300, "control_plane": 600, "chart": 600, "training": 1200, "e2e": 1800}
"""Seconds that a test in each folder may take, with the fixtures that it is the first to need.

They are no aim: a machine that is busy may be several times slower than usual.
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Limits every test that has no limit of its own, and says which tests stay in one process with `--dist loadgroup`.

    A test that exceeds its limit fails and shows the stacks of all threads.
    """
    files = list(dict.fromkeys(item.path for item in items if _folder(item) == "control_plane"))
    for item in items:
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(LIMITS[_folder(item)] * (10 if SOAK else 1)))
        item.add_marker(pytest.mark.xdist_group(_group(item, files)))


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(Path(__file__).parent).parts[0]


def _group(item: pytest.Item, control_plane: list[Path]) -> str:
    """The tests of a file, which may share a run; of several files those that share a server which is slow to start."""
    if "warm_ray" in getattr(item, "fixturenames", ()):
        return "ray"
    match _folder(item):
        case "chart":
            return "chart"
        case "control_plane":
            return f"control plane {control_plane.index(item.path) % 2}"
        case _:
            return item.path.name


@pytest.fixture
def namespace(cluster: Cluster) -> Generator[str]:
    """The name of a new namespace, which goes after the test with all that is in it."""
    with new_namespace(cluster) as name:
        yield name
