"""Fixtures and hooks that several folders of tests share."""

import gc
import signal
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from cluster.client import Cluster
from cluster.jobs import new_namespace
from environment import environment_kept
from soak import SOAK

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell script: runs would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest.register_assert_rewrite("folder_contract", "ownership")

settings.register_profile("usual", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("soak", deadline=None, max_examples=10_000)
settings.load_profile("soak" if SOAK else "usual")

LIMITS = {"unit": 300, "browser": 300, "control_plane": 600, "chart": 600, "training": 1200, "e2e": 1800}
"""Seconds that a test in each folder may take, with the fixtures that it is the first to need.

They are no aim: a machine that is busy may be several times slower than usual.
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the longest groups first, and gives every test a limit that has none of its own; one that exceeds it fails
    and shows the stacks of all threads."""
    items.sort(key=lambda item: place_of(group_of(item.nodeid)))
    for item in items:
        if item.get_closest_marker("timeout") is None:
            folder = item.path.relative_to(Path(__file__).parent).parts[0]
            item.add_marker(pytest.mark.timeout(LIMITS[folder] * (10 if SOAK else 1)))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """The garbage collector need not look again and again at a million objects of libraries, which stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_sessionfinish() -> None:
    gc.unfreeze()


def _training(*names: str) -> set[str]:
    return {f"tests/training/test_{name}.py" for name in names}


ON_ONE_RAY = _training("front_page", "mistakes", "own_function", "ray_token", "resume_on_ray", "serving", "tuning")
"""Files whose tests use the same Ray cluster."""
OF_ONE_RUN = _training("object_storage", "results", "resume")
"""Files whose tests look at the same finished run."""

LONGEST = (
    "ray",
    "control plane, l to z",
    "one run",
    "control plane, a to k",
    "chart",
    "tests/e2e/test_search.py",
    "tests/e2e/test_text_job.py",
    "tests/e2e/test_own_functions.py",
    "tests/unit/launch/test_local.py",
    "tests/unit/crd/test_schema.py",
    "tests/training/test_datasets.py",
    "tests/unit/worker/test_sharding.py",
    "tests/unit/worker/test_resuming.py",
    "tests/unit/worker/test_steps.py",
)
"""Groups of tests that begin first: one of them that came last would keep one process busy when the others are done."""


def group_of(nodeid: str) -> str:
    """A file, whose tests may share a run, or files that share a server, which is slow to start: one process runs all
    tests of a group. The tests on a control plane share two."""
    file = nodeid.partition("::")[0]
    if file.startswith("tests/chart/"):
        return "chart"
    if file.startswith("tests/control_plane/"):
        return "control plane, a to k" if file < "tests/control_plane/test_l" else "control plane, l to z"
    if file in OF_ONE_RUN:
        return "one run"
    return "ray" if file in ON_ONE_RAY else file


def place_of(group: str) -> int:
    return LONGEST.index(group) if group in LONGEST else len(LONGEST)


class ByServer(LoadFileScheduling):
    """Assigns all tests of a group to one process."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    return ByServer(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture(autouse=True)
def _environment_kept() -> Generator[None]:
    """Restores the variables that a run sets for Ray in the calling process."""
    with environment_kept():
        yield


@pytest.fixture
def namespace(cluster: Cluster) -> Generator[str]:
    """The name of a new namespace, which goes after the test with all that is in it."""
    with new_namespace(cluster) as name:
        yield name
