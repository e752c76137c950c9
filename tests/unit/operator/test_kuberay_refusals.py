"""Objects that KubeRay and the Job controller cannot create are reported while the job waits for them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from operator_objects import Object, pod, ray_job, trainjob

from trainjob.api.trainjob_status import TrainJobStatus
from trainjob_operator.reconcile import MAX_REQUEUE_SECONDS, STARTING_REQUEUE_SECONDS, requeue_after
from trainjob_operator.status import derive
from trainjob_operator.verdict import Observed

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
BEGUN = "2026-01-01T11:59:50Z"
HEAD: Object = {"ray.io/cluster": "job-abcde", "ray.io/node-type": "head"}
READY: Object = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
PODS = [pod("head", labels=HEAD, **READY), pod("worker", **READY)]
SUBMITTER = pod("job-12345", labels={"job-name": "job"})
QUOTA = "is forbidden: exceeded quota: small, requested: count/x=1, used: count/x=0, limited: count/x=0"
POLICY = "is forbidden: ValidatingAdmissionPolicy 'team' with binding 'team' denied request: no owner label"


def event(kind: str, name: str, reason: str, message: str = QUOTA, at: str = "2026-01-01T11:59:55Z") -> Object:
    return {"involvedObject": {"kind": kind, "name": name}, "reason": reason, "message": message, "lastTimestamp": at}


def status_of(
    events: list[Object], pods: list[Object], deployment: str, ran: str = "", at: datetime = NOW, **status: Any
) -> TrainJobStatus:
    found = Observed(ray_job(deployment, ran, startTime=BEGUN, **status), pods, events)
    return derive(trainjob(), 1, TrainJobStatus(), found, at)


CLUSTER_REFUSED = event("RayJob", "job", "FailedToCreateRayCluster")
SERVICE_REFUSED = event("RayCluster", "job-abcde", "FailedToCreateService")
SUBMITTER_REFUSED = event("RayJob", "job", "FailedToCreateRayJobSubmitter")
POD_REFUSED = event("Job", "job", "FailedCreate")
DASHBOARD_REFUSED = event("RayJob", "job", "FailedToCreateService")
EVENTS = [CLUSTER_REFUSED, SERVICE_REFUSED, SUBMITTER_REFUSED, POD_REFUSED, DASHBOARD_REFUSED]


@pytest.mark.parametrize(
    ("refusal", "pods", "deployment", "phase"),
    [
        (CLUSTER_REFUSED, [], "Initializing", "Pending"),
        (SERVICE_REFUSED, [], "Initializing", "Pending"),
        (SUBMITTER_REFUSED, PODS, "Initializing", "Pending"),
        (POD_REFUSED, PODS, "Running", "Starting"),
        (DASHBOARD_REFUSED, [*PODS, SUBMITTER], "Running", "Starting"),
    ],
)
def test_a_refusal_is_why_the_job_waits(refusal: Object, pods: list[Object], deployment: str, phase: str):
    found = status_of([refusal], pods, deployment)
    assert (found.phase, found.reason) == (phase, "QuotaExceeded")
    assert QUOTA in (found.message or "")
    assert [(each.reason, each.pods) for each in found.waiting] == [("QuotaExceeded", 0)]


@pytest.mark.parametrize("ran", ["", "PENDING", "Failure"])
def test_the_submitters_pod_is_waited_for_whatever_kuberay_reads_from_the_head(ran: str):
    found = status_of(EVENTS[3:4], PODS, "Running", ran)
    assert (found.phase, found.reason) == ("Starting", "QuotaExceeded")


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (POLICY, "AdmissionDenied"),
        ('is forbidden: User "system:serviceaccount:ray:kuberay" cannot create resource', "FailedToCreateRayCluster"),
    ],
)
def test_a_refusal_has_the_reason_that_the_api_server_gives(message: str, reason: str):
    refused = event("RayJob", "job", "FailedToCreateRayCluster", message)
    assert status_of([refused], [], "Initializing").reason == reason


@pytest.mark.parametrize(
    ("pods", "deployment", "ran", "reason"),
    [
        ([pod()], "Initializing", "", "PodsStarting"),
        (PODS, "Running", "RUNNING", "Training"),
        (PODS, "Running", "SUCCEEDED", "Finishing"),
        ([], "Suspending", "", "Resuming"),
    ],
)
def test_a_refusal_of_an_earlier_step_is_over(pods: list[Object], deployment: str, ran: str, reason: str):
    found = status_of(EVENTS, pods, deployment, ran)
    assert (found.reason, found.waiting) == (reason, [])


def test_of_several_refusals_only_that_of_the_present_step_is_told():
    named = [each | {"message": f"{each['involvedObject']['kind']} {each['reason']}"} for each in EVENTS]
    assert status_of(named, PODS, "Initializing").message == "RayJob FailedToCreateRayJobSubmitter"
    assert status_of(named, [*PODS, SUBMITTER], "Running").message == "RayJob FailedToCreateService"


def test_a_refusal_of_an_earlier_attempt_or_of_another_job_is_not_told():
    old = event("RayJob", "job", "FailedToCreateRayCluster", at="2026-01-01T11:00:00Z")
    other = event("RayJob", "another", "FailedToCreateRayCluster")
    found = status_of([old, other], [], "Initializing")
    assert (found.reason, found.waiting) == ("PodsStarting", [])


@pytest.mark.parametrize(
    "times",
    [
        {"lastTimestamp": None, "eventTime": "2026-01-01T11:59:56.123456Z"},
        {
            "lastTimestamp": None,
            "eventTime": "2026-01-01T11:00:00.000000Z",
            "series": {"count": 3, "lastObservedTime": "2026-01-01T11:59:56.123456Z"},
        },
    ],
)
def test_the_latest_event_counts_whichever_api_it_was_written_by(times: Object):
    newer = event("RayJob", "job", "FailedToCreateRayCluster", "the newer one") | times
    assert status_of([newer, CLUSTER_REFUSED], [], "Initializing").message == "the newer one"


def test_that_kuberay_creates_no_pod_and_says_nothing_is_told():
    """For example, KubeRay cannot create the Secret with the cluster's token."""
    early = status_of([], [], "Initializing", at=NOW)
    assert (early.reason, early.waiting) == ("PodsStarting", [])
    late = status_of([], [], "Initializing", at=NOW + timedelta(seconds=30))
    assert (late.phase, late.reason) == ("Pending", "PodsNotCreated")
    assert "Secret" in (late.message or "")
    assert status_of([], [pod()], "Initializing", at=NOW + timedelta(hours=1)).reason == "PodsStarting"
    assert status_of([SERVICE_REFUSED], [], "Initializing", at=NOW + timedelta(hours=1)).reason == "QuotaExceeded"


def test_pods_that_cannot_be_read_may_be_there():
    unreadable = Observed(ray_job("Initializing", startTime=BEGUN), unreadable=["pods cannot be read: 403"])
    status = derive(trainjob(), 1, TrainJobStatus(), unreadable, NOW + timedelta(hours=1))
    assert (status.reason, status.waiting) == ("PodsStarting", [])


@pytest.mark.parametrize(
    ("pods", "deployment", "after", "seconds"),
    [
        ([], "Initializing", 0, STARTING_REQUEUE_SECONDS),
        (PODS, "Initializing", 0, STARTING_REQUEUE_SECONDS),
        (PODS, "Running", 0, STARTING_REQUEUE_SECONDS),
        (PODS, "Running", 390, 40),
        ([pod()], "Initializing", 0, MAX_REQUEUE_SECONDS),
    ],
)
def test_events_are_looked_for_while_only_they_may_tell(
    pods: list[Object], deployment: str, after: int, seconds: float
):
    observed, at = Observed(ray_job(deployment, startTime=BEGUN), pods), NOW + timedelta(seconds=after)
    status = derive(trainjob(), 1, TrainJobStatus(), observed, at)
    assert requeue_after(trainjob(), status, observed, at) == seconds
