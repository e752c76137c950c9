"""Each refusal makes one Event, however often the operator tries again."""

from datetime import UTC, datetime

import pytest
from operator_objects import ray_job, trainjob

from trainjob.api.trainjob_status import TrainJobStatus
from trainjob_operator.errors import RayJobError
from trainjob_operator.events import events_for_change
from trainjob_operator.status import derive
from trainjob_operator.verdict import DELETING, Observed

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def status_of(error: RayJobError | None, before: TrainJobStatus, found: bool = False) -> TrainJobStatus:
    return derive(trainjob(), 1, before, Observed(ray_job() if found else None, error=error), NOW)


@pytest.mark.parametrize(
    "reason",
    ["UnknownNodePool", "NotAllowed", "NoStorage", "RayJobRefused", "NameTaken", "NetworkPolicyRefused", "InvalidSpec"],
)
@pytest.mark.parametrize("found", [False, True])
def test_a_refusal_makes_one_event(reason: str, found: bool):
    before = status_of(None, TrainJobStatus(), found)
    refused = status_of(RayJobError(reason, "why"), before, found)
    assert list(events_for_change(before, refused)) == [(reason, "why", True)]
    again = status_of(RayJobError(reason, "why, in other words"), refused, found)
    assert list(events_for_change(refused, again)) == []
    another = status_of(RayJobError("RayJobChanged", "why"), again, found)
    assert list(events_for_change(again, another)) == [("RayJobChanged", "why", True)]
    accepted = status_of(None, another, found)
    assert list(events_for_change(another, accepted)) == []
    assert [reason for reason, *_ in events_for_change(accepted, refused)] == [reason]


def test_a_trainjob_that_is_being_deleted_is_not_refused():
    before = status_of(None, TrainJobStatus())
    assert list(events_for_change(before, status_of(RayJobError(DELETING, "it is"), before))) == []
