"""A deadline ends a job wherever it stands, and the end says what the job waited for."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from operator_objects import Object, pod, ray_job, trainjob

from trainjob.api.training_status import Failure, TrainingStatus
from trainjob.api.trainjob_status import TrainJobStatus, Waiting
from trainjob_operator.errors import RayJobError
from trainjob_operator.reconcile import requeue_after
from trainjob_operator.status import derive
from trainjob_operator.verdict import DELETING, Observed

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
BEGUN = "2026-01-01T12:00:00Z"
READY: Object = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
NO_ROOM: Object = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "no room"}]}
WAITED = "it waited for Unschedulable: 1 pod waiting: no room"
NO_STORAGE = RayJobError("NoStorage", "the run has no storage")
STARTED = TrainJobStatus(phase="Pending", start_time=NOW, ray_job_name="job")


def observed(*arguments: Any, pods: Any = (), start: int | None = 600, **status: Any) -> Observed:
    return Observed(ray_job(*arguments, startTime=BEGUN, **status), pods, start_seconds=start)


def status_of(found: Observed, after: timedelta, before: TrainJobStatus = STARTED, **spec: Any) -> TrainJobStatus:
    return derive(trainjob(**{"deadlines": {"start": "10m"}, **spec}), 1, before, found, NOW + after)


@pytest.mark.parametrize(
    ("found", "minutes"),
    [
        (observed("Running", pods=[pod(**READY)]), 10),
        (observed("Running", "PENDING", pods=[pod(**READY)]), 10),
        (observed("Running", "Failure", pods=[pod(**READY)]), 10),
        (observed("Initializing"), 11),  # KubeRay's turn comes first, as it starts the next attempt
        (Observed(ray_job(), start_seconds=600), 11),  # KubeRay is away, or slow to see the RayJob
    ],
)
def test_a_driver_that_has_not_started_in_time_ends_the_job(found: Observed, minutes: int):
    early = status_of(found, minutes * MINUTE - timedelta(seconds=1))
    assert early.phase != "Failed"
    late = status_of(found, minutes * MINUTE, early)
    assert (late.phase, late.reason) == ("Failed", "PreRunningDeadlineExceeded")
    assert (late.message or "").startswith("the driver has not started within spec.deadlines.start, 10m")
    job, at = trainjob(deadlines={"start": "10m"}), NOW + minutes * MINUTE - timedelta(seconds=1)
    assert requeue_after(job, early, found, at) == 1


@pytest.mark.parametrize(
    ("found", "before", "spec"),
    [
        (observed("Running", "RUNNING"), STARTED, {}),
        (observed("Running", "SUCCEEDED"), STARTED, {}),
        (observed("Suspended"), STARTED, {}),
        (observed("Retrying"), STARTED, {}),
        (observed("Initializing", suspend=True), STARTED, {}),
        (observed("Running"), STARTED, {"suspend": True}),
        (observed("Running", start=None), STARTED, {}),
        (Observed(error=RayJobError(DELETING, "it is"), start_seconds=600), TrainJobStatus(start_time=NOW), {}),
        (Observed(error=NO_STORAGE, start_seconds=600), STARTED, {}),  # it had a RayJob already
    ],
)
def test_a_job_that_has_started_or_is_not_to_start_meets_no_such_deadline(
    found: Observed, before: TrainJobStatus, spec: Object
):
    assert status_of(found, 60 * MINUTE, before, **spec).phase != "Failed"


def test_a_driver_that_reports_has_started_though_kuberay_does_not_know():
    reported = STARTED.model_copy(update={"training": TrainingStatus(step=3, updated_time=NOW + MINUTE)})
    found = status_of(observed("Running"), 60 * MINUTE, reported)
    assert (found.phase, found.reason) == ("Running", "Training")
    earlier = STARTED.model_copy(update={"training": TrainingStatus(step=3, updated_time=NOW - MINUTE)})
    assert status_of(observed("Running"), 60 * MINUTE, earlier).reason == "PreRunningDeadlineExceeded"


def test_the_default_deadline_is_named():
    late = status_of(observed("Running"), 10 * MINUTE, deadlines={})
    assert late.message == "the driver has not started within spec.deadlines.start, 600s (the operator's default)"


@pytest.mark.parametrize(
    ("deadlines", "reason"), [({"total": "1h"}, "DeadlineExceeded"), ({"start": "1h"}, "PreRunningDeadlineExceeded")]
)
def test_a_job_that_is_never_accepted_meets_its_deadlines(deadlines: Object, reason: str):
    refused = Observed(error=NO_STORAGE, start_seconds=3600 if "start" in deadlines else None)
    first = status_of(refused, timedelta(), TrainJobStatus(), deadlines=deadlines)
    assert (first.phase, first.reason, first.start_time) == ("Pending", "NoStorage", NOW)
    job = trainjob(deadlines=deadlines)
    assert requeue_after(job, first, refused, NOW + 60 * MINUTE - timedelta(seconds=5)) == 5
    late = status_of(refused, 60 * MINUTE, first, deadlines=deadlines)
    assert (late.phase, late.reason, late.completion_time) == ("Failed", reason, NOW + 60 * MINUTE)
    assert (late.message or "").endswith("it waited for NoStorage: the run has no storage")


def test_a_refused_job_that_is_suspended_has_not_started():
    refused = Observed(error=NO_STORAGE)
    assert status_of(refused, timedelta(), TrainJobStatus(), suspend=True).start_time is None


def test_the_total_deadline_tells_what_the_job_waited_for():
    found = observed("Initializing", pods=[pod(**NO_ROOM)])
    late = status_of(found, 60 * MINUTE, deadlines={"total": "1h"})
    assert (late.phase, late.reason) == ("Failed", "DeadlineExceeded")
    assert late.message == f"not done within spec.deadlines.total, 1h; {WAITED}"
    assert late.waiting == [Waiting(reason="Unschedulable", pods=1, message="no room")]


@pytest.mark.parametrize(("deployment", "phase"), [("Failed", "Failed"), ("Retrying", "Retrying")])
def test_the_end_by_kuberays_own_deadline_tells_what_the_job_waited_for(deployment: str, phase: str):
    before = status_of(observed("Initializing", pods=[pod(**NO_ROOM)]), MINUTE)
    assert before.reason == "Unschedulable"
    over = observed(deployment, failed=1, reason="PreRunningDeadlineExceeded", message="too late")
    found = status_of(over, 10 * MINUTE, before, retries=1)
    assert (found.phase, found.reason, found.message) == (phase, "PreRunningDeadlineExceeded", f"too late; {WAITED}")
    assert found.waiting == before.waiting
    again = status_of(over, 10 * MINUTE, found, retries=1)
    assert (again.message, again.waiting) == (found.message, found.waiting)


def test_the_next_attempt_tells_what_the_last_one_waited_for():
    before = status_of(observed("Initializing", pods=[pod(**NO_ROOM)]), MINUTE, retries=1)
    over = observed("Retrying", failed=1, reason="PreRunningDeadlineExceeded", message="too late")
    ended = status_of(over, 10 * MINUTE, before, retries=1)
    found = status_of(observed("", failed=1), 10 * MINUTE, ended, retries=1)
    assert (found.reason, found.message) == ("PodsStarting", f"too late; {WAITED}; the next attempt is starting")
    assert found.waiting == []


def test_a_job_that_trains_waits_for_nothing_at_its_end():
    before = STARTED.model_copy(update={"waiting": [Waiting(reason="Unschedulable", pods=1, message="no room")]})
    late = status_of(observed("Running", "RUNNING"), 60 * MINUTE, before, deadlines={"total": "1h"})
    assert (late.message, late.waiting) == ("not done within spec.deadlines.total, 1h", [])


@pytest.mark.parametrize("ran", ["", "PENDING", "RUNNING"])
def test_kuberay_has_five_minutes_to_end_a_job_whose_training_has_failed_for_good(ran: str):
    """KubeRay cannot ask for the state of a job whose head Service it cannot create."""
    failure = Failure(exception="UserError", message="no column tag", retryable=False)
    failed = STARTED.model_copy(update={"training": TrainingStatus(failure=failure, updated_time=NOW + MINUTE)})
    found = observed("Running", ran, pods=[pod(**READY)])
    early = status_of(found, 6 * MINUTE - timedelta(seconds=1), failed)
    assert (early.phase, early.reason) == ("Running", "Training")
    assert (early.message or "").startswith("the driver failed: UserError: no column tag; waiting for KubeRay")
    assert requeue_after(trainjob(), early, found, NOW + 6 * MINUTE - timedelta(seconds=5)) == 5
    late = status_of(found, 6 * MINUTE, early)
    assert (late.phase, late.reason) == ("Failed", "TrainingFailed")
    assert (late.message, late.completion_time) == ("the driver failed: UserError: no column tag", NOW + MINUTE)
    by_total = status_of(found, 2 * MINUTE, early, deadlines={"total": "2m"})
    assert by_total.reason == "TrainingFailed"


@pytest.mark.parametrize(
    ("found", "retryable", "minute"),
    [
        (observed("Running", "RUNNING"), True, 1),
        (observed("Running", "RUNNING"), False, -1),  # an earlier attempt's
        (observed("Suspended", suspend=True), False, 1),
        (observed("Running", "RUNNING", suspend=True), False, 1),
        (observed("Retrying"), False, 1),
    ],
)
def test_no_other_failure_ends_a_job_by_itself(found: Observed, retryable: bool, minute: int):
    failure = Failure(exception="UserError", message="no", retryable=retryable)
    training = TrainingStatus(failure=failure, updated_time=NOW + minute * MINUTE)
    failed = STARTED.model_copy(update={"training": training})
    assert status_of(found, 60 * MINUTE, failed, deadlines={}).phase != "Failed"
