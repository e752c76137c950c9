"""If several facts about a job hold at once, the most important one decides its status."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from operator_objects import Object, pod, ray_job, trainjob

from trainjob.api.training_status import Failure, TrainingStatus
from trainjob.api.trainjob_status import TrainJobStatus
from trainjob_operator.errors import RayJobError
from trainjob_operator.reconcile import MAX_REQUEUE_SECONDS, REFUSED_REQUEUE_SECONDS, requeue_after
from trainjob_operator.status import derive
from trainjob_operator.verdict import DELETING, Observed

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
UNKNOWN_POOL = RayJobError("UnknownNodePool", "there is no node pool h100")
QUEUE: Object = {"labels": {"kueue.x-k8s.io/queue-name": "gpus"}}


def status_of(
    observed: Observed,
    before: TrainJobStatus | None = None,
    at: datetime = NOW,
    metadata: Object | None = None,
    **spec: Any,
) -> TrainJobStatus:
    return derive(trainjob(metadata, **spec), 1, before or TrainJobStatus(), observed, at)


def message_of(status: TrainJobStatus) -> str:
    assert status.message is not None
    return status.message


@pytest.mark.parametrize(
    ("deployment", "ran", "phase", "reason"),
    [
        ("Complete", "SUCCEEDED", "Succeeded", "Succeeded"),
        ("Failed", "FAILED", "Failed", "Failed"),
        ("ValidationFailed", "", "Failed", "ValidationFailed"),
        ("Running", "SUCCEEDED", "Running", "Finishing"),
        ("Running", "FAILED", "Running", "Finishing"),
        ("Running", "RUNNING", "Failed", "DeadlineExceeded"),
        ("Retrying", "FAILED", "Failed", "DeadlineExceeded"),
        ("Initializing", "", "Failed", "DeadlineExceeded"),
    ],
)
def test_a_rayjob_that_has_ended_outranks_the_deadline(deployment: str, ran: str, phase: str, reason: str):
    """The deadline may pass while the operator is down, or while KubeRay is cleaning up."""
    before = TrainJobStatus(phase="Running", reason="Training", start_time=NOW - 2 * HOUR)
    found = status_of(Observed(ray_job(deployment, ran)), before, deadlines={"total": "1h"})
    assert (found.phase, found.reason) == (phase, reason)


def test_a_refused_trainjob_is_tried_again_soon_but_not_one_that_is_being_deleted():
    """With foreground deletion, the job stays until all its dependents are gone, and is watched until then."""
    for error, seconds in (
        (UNKNOWN_POOL, REFUSED_REQUEUE_SECONDS),
        (RayJobError(DELETING, "it is"), MAX_REQUEUE_SECONDS),
    ):
        observed = Observed(ray_job("Running", "RUNNING"), error=error)
        assert requeue_after(trainjob(), status_of(observed), observed, NOW) == seconds


def test_a_job_that_is_finishing_past_its_deadline_is_not_reconciled_all_the_time():
    job, observed = trainjob(deadlines={"total": "1h"}), Observed(ray_job("Running", "SUCCEEDED"))
    status = derive(job, 1, TrainJobStatus(start_time=NOW - 2 * HOUR), observed, NOW)
    assert requeue_after(job, status, observed, NOW) == MAX_REQUEUE_SECONDS


@pytest.mark.parametrize(
    ("deployment", "ran", "phase", "reason"),
    [
        ("Running", "RUNNING", "Running", "Training"),
        ("Complete", "SUCCEEDED", "Succeeded", "Succeeded"),
        ("Failed", "FAILED", "Failed", "Failed"),
        ("Suspended", "", "Pending", "Resuming"),
    ],
)
def test_an_error_does_not_hide_the_rayjob_that_exists(deployment: str, ran: str, phase: str, reason: str):
    found = status_of(Observed(ray_job(deployment, ran), error=UNKNOWN_POOL))
    assert (found.phase, found.reason) == (phase, reason)
    accepted = found.conditions[0]
    assert (accepted.type, accepted.status, accepted.reason) == ("Accepted", "False", "UnknownNodePool")
    is_final = found.phase in ("Succeeded", "Failed")
    assert is_final or "the RayJob stays as it is: there is no node pool h100" in message_of(found)


def test_a_job_with_an_error_is_still_suspended():
    found = status_of(Observed(ray_job("Suspended", suspend=True), error=UNKNOWN_POOL), suspend=True)
    assert (found.phase, found.reason) == ("Suspended", "Suspended")


def test_what_could_not_be_read_is_said():
    found = status_of(Observed(ray_job("Running", "RUNNING"), unreadable=["pods cannot be read: forbidden"]))
    assert (found.phase, found.message) == ("Running", "pods cannot be read: forbidden")


def test_a_failure_without_a_message_is_told():
    before = TrainJobStatus(training=TrainingStatus(failure=Failure(rank=0, exception="AssertionError")))
    found = status_of(Observed(ray_job("Failed", "FAILED", reason="AppFailed")), before)
    assert (found.reason, found.message) == ("TrainingFailed", "worker 0 failed: AssertionError")


def test_time_in_a_queue_does_not_count_against_the_deadline():
    spec: Any = {"metadata": QUEUE, "deadlines": {"total": "1h"}}
    queued, running = Observed(ray_job("", suspend=True)), Observed(ray_job("Running", "RUNNING"))
    status = status_of(queued, **spec)
    assert (status.reason, status.start_time) == ("Queued", None)
    status = status_of(queued, status, NOW + 9 * HOUR, **spec)
    assert (status.phase, status.start_time) == ("Suspended", None)
    status = status_of(running, status, NOW + 9 * HOUR, **spec)
    assert (status.phase, status.start_time) == ("Running", NOW + 9 * HOUR)
    status = status_of(queued, status, NOW + 9.5 * HOUR, **spec)
    status = status_of(queued, status, NOW + 20 * HOUR, **spec)
    assert (status.phase, status.reason) == ("Suspended", "Queued")
    status = status_of(running, status, NOW + 29.5 * HOUR, **spec)
    assert (status.phase, status.start_time) == ("Running", NOW + 29 * HOUR)
    assert status_of(running, status, NOW + 29.9 * HOUR, **spec).phase == "Running"
    assert status_of(running, status, NOW + 30 * HOUR, **spec).reason == "DeadlineExceeded"


@pytest.mark.parametrize("spec", [{"suspend": True}, {"metadata": QUEUE}])
def test_a_job_is_suspended_once_its_pods_are_gone(spec: Any):
    """KubeRay, which deletes them, may be down."""
    before = TrainJobStatus(phase="Running", reason="Training")
    left = [pod("a", phase="Running"), pod("done", labels={"job-name": "job"}, phase="Succeeded")]
    found = status_of(Observed(ray_job("Running", "RUNNING", suspend=True), left), before, **spec)
    assert (found.phase, found.reason) == ("Running", "Suspending")
    assert message_of(found).endswith(": 1")
    found = status_of(Observed(ray_job("Suspended", suspend=True), left[1:]), before, **spec)
    assert found.phase == "Suspended"


@pytest.mark.parametrize(
    ("deployment", "phase", "reason"),
    [("Running", "Pending", "RayJobDeleting"), ("Complete", "Succeeded", "Succeeded")],
)
def test_a_rayjob_that_is_being_deleted_is_told_with_what_holds_it(deployment: str, phase: str, reason: str):
    leaving = ray_job(deployment, "SUCCEEDED")
    leaving["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/audit"]}
    found = status_of(Observed(leaving))
    assert (found.phase, found.reason) == (phase, reason)
    assert reason == "Succeeded" or "example.com/audit" in message_of(found)


@pytest.mark.parametrize("is_leaving", [False, True])
def test_a_trainjob_that_is_being_deleted_says_so(is_leaving: bool):
    found = ray_job("Running", "RUNNING")
    if is_leaving:
        found["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["ray.io/rayjob-finalizer"]}
    status = status_of(Observed(found, error=RayJobError("Deleting", "the TrainJob is being deleted")))
    assert (status.phase, status.reason) == (("Pending", "Deleting") if is_leaving else ("Running", "Training"))
    assert (status.conditions[0].status, status.conditions[0].reason) == ("False", "Deleting")
    assert message_of(status).endswith("the TrainJob is being deleted")
    assert "another one is created" not in message_of(status)


def test_a_queue_that_takes_no_notice_of_suspend_is_named():
    """Kueue is not installed, or does not manage the namespace."""
    found = status_of(Observed(ray_job("Running", "RUNNING")), metadata=QUEUE, suspend=True)
    assert (found.phase, found.reason) == ("Running", "Training")
    assert "the queue gpus" in message_of(found)
    assert "Kueue" in message_of(found)
    managed = Observed(ray_job("Running", "RUNNING"), workloads=[{"spec": {"active": False}}])
    assert status_of(managed, metadata=QUEUE, suspend=True).message == ""


@pytest.mark.parametrize("annotations", [None, {}, {"trainjob.dev/workers": "many"}, {"trainjob.dev/workers": "-1"}])
def test_a_pod_without_the_operators_annotation_is_no_workers(annotations: Object | None):
    stranger = pod("a", phase="Running", conditions=[{"type": "Ready", "status": "True"}])
    del stranger["metadata"]["annotations"]
    stranger["metadata"] |= {} if annotations is None else {"annotations": annotations}
    workers = status_of(Observed(ray_job("Running", "RUNNING"), [stranger])).workers
    assert workers is not None
    assert workers.ready == 0
