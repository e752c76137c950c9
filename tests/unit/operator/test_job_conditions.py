"""The conditions in a TrainJob's status, which `kubectl wait` reads."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest
from operator_objects import Object, trainjob

from trainjob.api import TrainJob
from trainjob.api.trainjob_status import ConditionType, TrainJobStatus
from trainjob_operator.errors import RayJobError
from trainjob_operator.status import derive
from trainjob_operator.verdict import Observed

START = datetime(2026, 1, 1, tzinfo=UTC)
CREATED: Object = {"metadata": {"name": "job"}, "spec": {"suspend": False}, "status": {}}
UNAVAILABLE = Observed(error=RayJobError("RayJobRefused", "the webhook is down"))
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
        (Observed(), {"Accepted", "Reconciling"}),
        (REFUSED, {"Stalled"}),
        (UNAVAILABLE, {"Reconciling"}),
        (seen("Initializing"), {"Accepted", "Reconciling"}),
        (seen("Running", "RUNNING"), {"Accepted", "Reconciling"}),
        (seen("Suspended", suspend=True), {"Accepted", "Suspended", "Reconciling"}),
        (seen("Complete", "SUCCEEDED"), {"Accepted", "Complete", "Ready"}),
        (seen("Complete", "STOPPED"), {"Accepted", "Failed", "Stalled"}),
        (seen("Failed"), {"Accepted", "Failed", "Stalled"}),
    ],
)
def test_conditions_hold_with_the_phase(observed: Observed, holds: set[str]):
    [status] = history([observed])
    assert [condition.type for condition in status.conditions] == list(get_args(ConditionType))
    assert holding(status) == holds


def test_a_refusal_of_a_change_does_not_stall_a_job_that_runs():
    observed = seen("Running", "RUNNING")
    [status] = history([replace(observed, error=RayJobError("NotAllowed", "root"))])
    assert holding(status) == {"Reconciling"}


@pytest.mark.parametrize(
    ("job", "observed", "judged"),
    [
        (trainjob(), Observed(), "InProgress"),
        (trainjob(), REFUSED, "Failed"),
        (trainjob(), UNAVAILABLE, "InProgress"),
        (trainjob(), seen("Running", "RUNNING"), "InProgress"),
        (trainjob(), seen("Retrying"), "InProgress"),
        (trainjob(), seen("Suspended", suspend=True), "InProgress"),
        (trainjob(suspend=True), seen("Suspended", suspend=True), "InProgress"),
        (trainjob(), seen("Complete", "SUCCEEDED"), "Current"),
        (trainjob(), seen("Failed"), "Failed"),
    ],
)
def test_kstatus_judges_as_the_phase_says(job: TrainJob, observed: Observed, judged: str):
    status = derive(job, 3, TrainJobStatus(), observed, START)
    assert kstatus(3, status) == judged
    assert len(holding(status) & {"Reconciling", "Stalled"}) <= 1
    assert all(condition.message for condition in status.conditions if condition.type in holding(status) - {"Accepted"})
    assert kstatus(4, status) == "InProgress"


def test_a_spec_that_changes_after_the_end_is_observed():
    [ended] = history([seen("Complete", "SUCCEEDED")])
    again = derive(trainjob(), 7, ended, REFUSED, START)
    assert kstatus(7, again) == "Current"
    assert {each.observed_generation for each in again.conditions} == {again.observed_generation} == {7}
    about = {"observed_generation": 0, "conditions": ended.conditions}
    assert again.model_copy(update=about) == ended


def kstatus(generation: int, status: TrainJobStatus) -> str:
    """The verdict of kstatus on an unknown resource, by the rules of its `checkGenericProperties` and
    `checkReadyCondition`."""
    if status.observed_generation != generation:
        return "InProgress"
    judged = {("Reconciling", "True"): "InProgress", ("Stalled", "True"): "Failed"}
    ready = {("Ready", "True"): "Current", ("Ready", "False"): "InProgress", ("Ready", "Unknown"): "InProgress"}
    told = [(condition.type, condition.status) for condition in status.conditions]
    return next((rules[each] for rules in (judged, ready) for each in told if each in rules), "Current")


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
    names = ["Accepted", "Complete", "Failed", "Suspended", "Reconciling", "Stalled", "Ready"]
    last = dict(zip(names, minutes[-1], strict=True))
    assert last == {
        "Accepted": 1,
        "Complete": 6,
        "Failed": 0,
        "Suspended": 5,
        "Reconciling": 6,
        "Stalled": 1,
        "Ready": 6,
    }
    assert [dict(zip(names, each, strict=True))["Suspended"] for each in minutes] == [0, 0, 0, 3, 3, 5, 5]


def test_a_condition_says_why_it_holds_and_of_which_generation():
    *_, status = history([seen("Initializing"), seen("Failed", "FAILED")])
    accepted, complete, failed, suspended, *_ = status.conditions
    assert [condition.observed_generation for condition in status.conditions] == [1] * 7
    assert (accepted.reason, complete.reason, suspended.reason) == ("Accepted", "NotComplete", "NotSuspended")
    assert (accepted.message, complete.message, suspended.message) == ("", "", "")
    assert (failed.reason, failed.message) == (status.reason, status.message)


def test_a_refusal_is_the_message_of_accepted():
    [status] = history([REFUSED])
    told = {condition.type for condition in status.conditions if condition.message == "there is no node pool h100"}
    assert told == {"Accepted", "Stalled", "Ready"}


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
