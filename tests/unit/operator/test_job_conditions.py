"""The conditions in a TrainJob's status, which `kubectl wait` reads."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest
from operator_objects import Object, trainjob

from trainjob.api.trainjob_status import TrainJobStatus
from trainjob_operator.errors import RayJobError
from trainjob_operator.status import derive
from trainjob_operator.verdict import Observed

START = datetime(2026, 1, 1, tzinfo=UTC)
CREATED: Object = {"metadata": {"name": "job"}, "spec": {"suspend": False}, "status": {}}
REFUSED = Observed(error=RayJobError("UnknownNodePool", "there is no node pool h100"))


def seen(deployment: str, ran: str = "", suspend: bool = False) -> Observed:
    return Observed(
        CREATED | {"spec": {"suspend": suspend}, "status": {"jobDeploymentStatus": deployment, "jobStatus": ran}}
    )


def history(steps: Iterable[Observed]) -> list[TrainJobStatus]:
    """The statuses of a job that was seen like this, a minute apart."""
    statuses, status = list[TrainJobStatus](), TrainJobStatus()
    for minute, observed in enumerate(steps):
        status = derive(trainjob(), minute, status, observed, START + timedelta(minutes=minute))
        statuses.append(status)
    return statuses


def holding(status: TrainJobStatus) -> set[str]:
    return {condition.type for condition in status.conditions if condition.status == "True"}


@pytest.mark.parametrize(
    ("observed", "holds"),
    [
        (Observed(), {"Accepted"}),
        (REFUSED, set[str]()),
        (seen("Initializing"), {"Accepted"}),
        (seen("Running", "RUNNING"), {"Accepted"}),
        (seen("Suspended", suspend=True), {"Accepted", "Suspended"}),
        (seen("Complete", "SUCCEEDED"), {"Accepted", "Complete"}),
        (seen("Complete", "STOPPED"), {"Accepted", "Failed"}),
        (seen("Failed"), {"Accepted", "Failed"}),
    ],
)
def test_conditions_hold_with_the_phase(observed: Observed, holds: set[str]):
    [status] = history([observed])
    assert [condition.type for condition in status.conditions] == ["Accepted", "Complete", "Failed", "Suspended"]
    assert holding(status) == holds


def test_times_move_only_when_a_status_flips():
    statuses = history(
        [
            REFUSED,
            seen("Initializing"),
            seen("Running", "RUNNING"),
            seen("Suspended", suspend=True),
            seen("Suspended", suspend=True),
            seen("Running", "RUNNING"),
            seen("Complete", "SUCCEEDED"),
        ]
    )
    minutes = [
        [(condition.last_transition_time - START) // timedelta(minutes=1) for condition in status.conditions]
        for status in statuses
    ]
    assert minutes == [[0, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 3], [1, 0, 0, 3], [1, 0, 0, 5], [1, 6, 0, 5]]


def test_a_condition_says_why_it_holds_and_of_which_generation():
    *_, status = history([seen("Initializing"), seen("Failed", "FAILED")])
    accepted, complete, failed, suspended = status.conditions
    assert [condition.observed_generation for condition in status.conditions] == [1] * 4
    assert (accepted.reason, complete.reason, suspended.reason) == ("Accepted", "NotComplete", "NotSuspended")
    assert (accepted.message, complete.message, suspended.message) == ("", "", "")
    assert (failed.reason, failed.message) == (status.reason, status.message)


def test_a_refusal_is_the_message_of_accepted():
    [status] = history([REFUSED])
    assert [condition.message for condition in status.conditions] == ["there is no node pool h100", "", "", ""]


def test_a_message_is_cut_to_what_the_crd_takes():
    long = "x" * 5000
    [refused] = history([Observed(error=RayJobError("UnknownNodePool", long))])
    [failed] = history([Observed(CREATED | {"status": {"jobDeploymentStatus": "Failed", "message": long}})])
    assert refused.message == failed.message == long[:4096]
    assert refused.conditions[0].message == failed.conditions[2].message == long[:4096]


def test_what_could_not_be_read_or_changed_is_said_beside_the_message():
    error = RayJobError("RayJobRefused", "no such field")
    [status] = history([Observed(seen("Running", "RUNNING").ray_job, error=error, unreadable=["no pods", "no events"])])
    assert status.message == "no pods; no events; the RayJob stays as it is: no such field"
