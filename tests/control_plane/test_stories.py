"""The same end whenever the operator was away: stories of TrainJobs, with restarts between their steps.

Every story of the table in stories.py is played with an operator that is always there, with one that is killed before
every step and started again after it, and with one that is away until the end; in `make soak` also with one that misses
two steps at a time. KubeRay does not run here: the table says what it reports, and when.
"""

from collections import Counter
from collections.abc import Generator

import pytest
from stage import Outcome, holds, played
from stories import STORIES
from story import Story

from cluster.control_plane import ControlPlane
from soak import SOAK

# For how many steps the operator is away at a time
MODES = {"present": 0, "killed before every step": 1, "away until the end": 99}
if SOAK:
    MODES["away for two steps"] = 2


@pytest.fixture(scope="module")
def outcomes(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Generator[dict[str, dict[str, Outcome]]]:
    """The end of each story, by mode."""
    control_plane.stop("kuberay-operator")
    try:
        yield played(control_plane, STORIES, MODES, tmp_path_factory.mktemp("stories"))
    finally:
        control_plane.start("kuberay-operator")


@pytest.mark.parametrize("name", STORIES)
def test_a_story_ends_as_it_is_told(outcomes: dict[str, dict[str, Outcome]], name: str):
    told, found = STORIES[name], outcomes["present"][name]
    assert holds(told.steps[-1].then, found.status)
    assert found.events == Counter(reason for each in told.steps for reason in each.says)
    assert_ray_jobs_are(found, told)


@pytest.mark.parametrize("mode", list(MODES)[1:])
@pytest.mark.parametrize("name", STORIES)
def test_it_ends_the_same_with_restarts(outcomes: dict[str, dict[str, Outcome]], name: str, mode: str):
    told, usual, found = STORIES[name], outcomes["present"][name], outcomes[mode][name]
    unseen = told.unseen if MODES[mode] > 1 else ()
    assert {**found.status, **dict.fromkeys(unseen)} == {**usual.status, **dict.fromkeys(unseen)}
    assert found.events == usual.events if MODES[mode] == 1 else found.events <= usual.events
    assert set(told.steps[-1].says) <= set(found.events)
    assert_ray_jobs_are(found, told)


def assert_ray_jobs_are(found: Outcome, told: Story) -> None:
    assert found.ray_jobs == told.ray_jobs
    assert (found.left is None) == (told.left is None)
    assert (told.left or {}).items() <= (found.left or {}).items()
