"""TrainJob, RayJob, pods and time → the TrainJob's status."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from operator_objects import OF_KUBERAY, Object, ray_job, trainjob

from trainjob.api import TrainJob
from trainjob.api.training_status import Failure, TrainingStatus
from trainjob.api.trainjob_status import TrainJobStatus, Waiting
from trainjob_operator.errors import RayJobError
from trainjob_operator.status import NO_WORKLOAD, derive, same_operator_fields
from trainjob_operator.verdict import Observed

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
END = "2026-01-01T11:59:58Z"
SUSPENDED = pytest.mark.parametrize("deployment", ["", "Initializing", "Running", "Suspending", "Suspended"])


def failure(rank: int | None = 1, *, retryable: bool = True) -> Failure:
    return Failure(rank=rank, exception="OutOfMemoryError", message="CUDA out of memory", retryable=retryable)


def status_of(
    found: Observed, *, before: TrainJobStatus | None = None, job: TrainJob | None = None, at: datetime = NOW
) -> TrainJobStatus:
    return derive(job or trainjob(), 1, before or TrainJobStatus(), found, at)


def of_ray_job(
    *arguments: str, job: TrainJob | None = None, before: TrainJobStatus | None = None, **fields: Any
) -> TrainJobStatus:
    return status_of(Observed(ray_job(*arguments, **fields)), job=job, before=before)


@pytest.mark.parametrize(
    ("deployment", "ran", "phase", "reason"),
    [
        ("", "", "Pending", "Created"),
        ("Initializing", "", "Pending", "PodsStarting"),
        ("Waiting", "", "Pending", "PodsStarting"),
        ("Running", "", "Starting", "PodsReady"),
        ("Running", "PENDING", "Starting", "PodsReady"),
        ("Running", "RUNNING", "Running", "Training"),
        ("Running", "SUCCEEDED", "Running", "Finishing"),
        ("Running", "FAILED", "Running", "Finishing"),
        ("Running", "STOPPED", "Running", "Finishing"),
        ("Complete", "SUCCEEDED", "Succeeded", "Succeeded"),
        ("Complete", "STOPPED", "Failed", "Stopped"),
        ("Complete", "FAILED", "Failed", "Failed"),
        ("Failed", "", "Failed", "Failed"),
        ("Failed", "PENDING", "Failed", "Failed"),
        ("Failed", "RUNNING", "Failed", "Failed"),
        ("Failed", "FAILED", "Failed", "Failed"),
        ("Failed", "SUCCEEDED", "Failed", "Failed"),
        ("ValidationFailed", "", "Failed", "ValidationFailed"),
        ("Suspending", "RUNNING", "Pending", "Resuming"),
        ("Suspended", "", "Pending", "Resuming"),
        ("Retrying", "FAILED", "Retrying", "Failed"),
    ],
)
def test_kuberays_status_is_read(deployment: str, ran: str, phase: str, reason: str):
    found = of_ray_job(deployment, ran)
    assert (found.phase, found.reason) == (phase, reason)


@pytest.mark.parametrize(
    ("deployment", "ran", "phase", "reason"),
    [
        ("", "", "Retrying", "PodsStarting"),
        ("Initializing", "", "Retrying", "PodsStarting"),
        ("Waiting", "", "Retrying", "PodsStarting"),
        ("Running", "", "Retrying", "PodsReady"),
        ("Running", "PENDING", "Retrying", "PodsReady"),
        ("Running", "RUNNING", "Running", "Training"),
        ("Running", "FAILED", "Running", "Finishing"),
        ("Complete", "SUCCEEDED", "Succeeded", "Succeeded"),
    ],
)
def test_after_a_failed_attempt_a_start_is_a_retry(deployment: str, ran: str, phase: str, reason: str):
    found = of_ray_job(deployment, ran, failed=1, job=trainjob(retries=3))
    assert (found.phase, found.reason, found.attempt) == (phase, reason, 2)


@pytest.mark.parametrize("deployment", ["Failed", "ValidationFailed", "Retrying"])
@pytest.mark.parametrize("reason", OF_KUBERAY)
def test_kuberays_reason_and_message_are_passed_on(deployment: str, reason: str):
    found = of_ray_job(deployment, "RUNNING", reason=reason, message="in KubeRay's words")
    assert (found.reason, found.message) == (reason, "in KubeRay's words")


def test_without_a_rayjob_a_trainjob_is_pending():
    found = status_of(Observed())
    assert (found.phase, found.reason, found.start_time, found.ray_job_name) == ("Pending", "Created", None, None)


@SUSPENDED
def test_a_suspended_trainjob_is_suspended_wherever_its_rayjob_stands(deployment: str):
    found = of_ray_job(deployment, suspend=True, job=trainjob(suspend=True))
    assert (found.phase, found.reason, found.start_time) == ("Suspended", "Suspended", None)


@pytest.mark.parametrize(("deployment", "phase"), [("Complete", "Succeeded"), ("Failed", "Failed")])
def test_a_job_that_has_ended_is_not_suspended_any_more(deployment: str, phase: str):
    assert of_ray_job(deployment, "SUCCEEDED", suspend=True, job=trainjob(suspend=True)).phase == phase


QUEUED: Object = {"type": "QuotaReserved", "status": "False", "message": "insufficient unused quota for gpu"}


@SUSPENDED
@pytest.mark.parametrize(
    ("labels", "conditions", "message"),
    [
        ({}, None, "the RayJob is suspended by another controller"),
        ({"kueue.x-k8s.io/queue-name": "gpus"}, None, f"waits in the queue gpus; {NO_WORKLOAD}"),
        ({"kueue.x-k8s.io/queue-name": "gpus"}, [], "waits in the queue gpus"),
        ({"kueue.x-k8s.io/queue-name": "gpus"}, [QUEUED | {"status": "True"}], "waits in the queue gpus"),
        ({"kueue.x-k8s.io/queue-name": "gpus"}, [QUEUED], QUEUED["message"]),
        ({"kueue.x-k8s.io/queue-name": "gpus"}, [QUEUED | {"type": "Admitted"}], QUEUED["message"]),
    ],
)
def test_a_rayjob_that_a_queue_suspends_is_queued(
    deployment: str, labels: Object, conditions: list[Object] | None, message: str
):
    workloads = [] if conditions is None else [{"status": {"conditions": conditions}}]
    observed = Observed(ray_job(deployment, suspend=True), workloads=workloads)
    found = status_of(observed, job=trainjob({"labels": labels}))
    assert (found.phase, found.reason, found.message) == ("Suspended", "Queued", message)


@pytest.mark.parametrize(
    ("deployment", "ran"),
    [("Failed", "FAILED"), ("Failed", "RUNNING"), ("Complete", "STOPPED"), ("Running", "RUNNING"), ("Retrying", "")],
)
def test_a_finished_training_outranks_kuberays_verdict(deployment: str, ran: str):
    before = TrainJobStatus(training=TrainingStatus(stage="Finished"))
    found = of_ray_job(deployment, ran, before=before, reason="AppFailed", endTime=END)
    assert (found.phase, found.completion_time) == ("Succeeded", datetime.fromisoformat(END))
    assert found.training == before.training


def test_a_finished_training_outranks_a_deadline_and_a_rayjob_that_is_gone():
    before = TrainJobStatus(training=TrainingStatus(stage="Finished"), start_time=NOW - timedelta(days=9))
    found = status_of(Observed(), before=before, job=trainjob(deadlines={"total": "1d"}))
    assert (found.phase, found.completion_time) == ("Succeeded", NOW)


@pytest.mark.parametrize(("rank", "where"), [(1, "worker 1"), (0, "worker 0"), (None, "the driver")])
def test_a_failure_is_told_in_the_trainers_words(rank: int | None, where: str):
    before = TrainJobStatus(training=TrainingStatus(failure=failure(rank)))
    found = of_ray_job("Failed", "FAILED", before=before, reason="AppFailed", message="exit code 1")
    assert (found.phase, found.reason) == ("Failed", "TrainingFailed")
    assert found.message == f"{where} failed: OutOfMemoryError: CUDA out of memory"


@pytest.mark.parametrize(
    ("deployment", "ran", "reason", "retryable", "phase", "told"),
    [
        ("Running", "RUNNING", "", False, "Running", "Training"),
        ("Running", "FAILED", "", False, "Running", "Finishing"),
        ("Retrying", "FAILED", "AppFailed", False, "Retrying", "AppFailed"),
        ("Failed", "FAILED", "AppFailed", True, "Failed", "TrainingFailed"),
        ("Failed", "FAILED", "AppFailed", False, "Failed", "TrainingFailed"),
        ("Failed", "", "PreRunningDeadlineExceeded", True, "Failed", "PreRunningDeadlineExceeded"),
        ("Failed", "RUNNING", "JobStatusCheckTimeoutExceeded", True, "Failed", "JobStatusCheckTimeoutExceeded"),
        ("Failed", "RUNNING", "JobStatusCheckTimeoutExceeded", False, "Failed", "TrainingFailed"),
        ("Complete", "SUCCEEDED", "", True, "Succeeded", "Succeeded"),
        ("Complete", "SUCCEEDED", "", False, "Succeeded", "Succeeded"),
        ("Complete", "STOPPED", "", True, "Failed", "Stopped"),
        ("Complete", "STOPPED", "", False, "Failed", "TrainingFailed"),
    ],
)
def test_a_failure_may_be_an_earlier_attempts(
    deployment: str, ran: str, reason: str, retryable: bool, phase: str, told: str
):
    before = TrainJobStatus(training=TrainingStatus(failure=failure(retryable=retryable)))
    found = of_ray_job(deployment, ran, before=before, reason=reason)
    assert (found.phase, found.reason) == (phase, told)


@pytest.mark.parametrize("deployment", ["", "Initializing", "Running", "Retrying"])
def test_a_failure_is_no_verdict_while_kuberay_tries_again(deployment: str):
    before = TrainJobStatus(training=TrainingStatus(failure=failure()))
    assert of_ray_job(deployment, failed=1, before=before, job=trainjob(retries=1)).phase == "Retrying"


def test_a_failure_that_kuberay_has_not_noticed_is_told():
    before = TrainJobStatus(training=TrainingStatus(failure=failure(retryable=False)))
    found = of_ray_job("Running", "RUNNING", before=before)
    assert (found.phase, found.reason) == ("Running", "Training")
    assert (found.message or "").startswith(
        "worker 1 failed: OutOfMemoryError: CUDA out of memory; waiting for KubeRay"
    )


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
@pytest.mark.parametrize(
    "observed",
    [
        Observed(),
        Observed(error=RayJobError("UnknownNodePool", "no")),
        *[Observed(ray_job(deployment)) for deployment in ("", "Running", "Complete", "Failed", "Suspended")],
    ],
)
def test_a_verdict_never_changes(phase: Any, observed: Observed):
    job = trainjob(suspend=True, deadlines={"total": "1s"})
    training = TrainingStatus(stage="Finished", failure=failure())
    before = TrainJobStatus(phase=phase, start_time=NOW, observed_generation=1, training=training)
    assert status_of(observed, before=before, job=job, at=NOW + timedelta(days=9)) == before


@pytest.mark.parametrize(("deployment", "suspend"), [("Running", False), ("Retrying", False), ("Suspended", True)])
@pytest.mark.parametrize(("after", "over"), [(0, False), (59, False), (60, True), (86400, True)])
def test_the_total_deadline_counts_from_the_first_start(deployment: str, suspend: bool, after: int, over: bool):
    job = trainjob(deadlines={"total": "1m"}, suspend=suspend)
    before = TrainJobStatus(start_time=NOW, attempt=3)
    found = status_of(Observed(ray_job(deployment)), before=before, job=job, at=NOW + timedelta(seconds=after))
    assert (found.phase == "Failed") == over
    assert (found.reason == "DeadlineExceeded") == over
    assert found.completion_time == (NOW + timedelta(seconds=after) if over else None)
    assert found.start_time == NOW


def test_time_in_a_queue_that_no_condition_tells_moves_no_start():
    before = TrainJobStatus(phase="Suspended", reason="Queued", start_time=NOW)
    found = status_of(Observed(ray_job("Running", "RUNNING")), before=before, at=NOW + timedelta(hours=1))
    assert found.start_time == NOW


def test_a_job_that_has_not_started_meets_no_deadline():
    job = trainjob(deadlines={"total": "1s"}, suspend=True)
    suspended = status_of(Observed(ray_job("Suspended", suspend=True)), job=job)
    later = status_of(
        Observed(ray_job("Suspended", suspend=True)), before=suspended, job=job, at=NOW.replace(year=2030)
    )
    assert (later.phase, later.start_time) == ("Suspended", None)


@pytest.mark.parametrize(
    ("deployment", "failed", "retries", "before", "attempt"),
    [
        ("Running", 0, 0, None, 1),
        ("Running", 1, 0, None, 2),  # when the first one failed, retries were more
        ("Running", 1, 3, None, 2),
        ("Running", 0, 3, None, 1),
        ("Running", 0, 3, 2, 2),
        ("Retrying", 1, 3, 1, 2),
        ("Running", 3, 3, 3, 4),
        ("Failed", 1, 3, None, 1),
        ("Failed", 1, 3, 1, 1),
        ("Failed", 4, 3, 4, 4),
    ],
)
def test_attempts_are_counted(deployment: str, failed: int, retries: int, before: int | None, attempt: int):
    job = trainjob(retries=retries)
    found = of_ray_job(deployment, "RUNNING", failed=failed, job=job, before=TrainJobStatus(attempt=before))
    assert found.attempt == attempt


def test_a_refused_trainjob_says_why():
    refused = RayJobError("UnknownNodePool", "there is no node pool h100")
    found = status_of(Observed(error=refused))
    assert (found.phase, found.reason, found.message) == ("Pending", "UnknownNodePool", "there is no node pool h100")
    accepted = found.conditions[0]
    assert (accepted.type, accepted.status, accepted.reason) == ("Accepted", "False", "UnknownNodePool")


def test_only_the_operators_own_part_is_compared():
    status = of_ray_job("Running", "RUNNING")
    assert same_operator_fields(status, status.model_copy(update={"training": TrainingStatus(epoch=3)}))
    assert not same_operator_fields(status, status.model_copy(update={"reason": "Finishing"}))


def test_names_and_addresses_are_passed_on():
    found = of_ray_job("Running", "RUNNING", dashboardURL="job-abcde-head-svc:8265")
    assert (found.ray_job_name, found.ray_cluster_name) == ("job", "job-abcde")
    assert found.dashboard_url == "job-abcde-head-svc:8265"
    assert (found.observed_generation, found.start_time, found.completion_time) == (1, NOW, None)


KILLED = "Job entrypoint command failed with exit code 137, last available logs: Killed"


def test_a_driver_that_was_killed_is_said_to_have_wanted_memory():
    found = of_ray_job("Failed", "FAILED", reason="AppFailed", message=KILLED)
    assert found.message == f"the driver was killed, usually because the head pod ran out of memory: {KILLED}"


def test_what_ended_an_attempt_is_told_while_the_next_one_starts():
    finishing = of_ray_job("Running", "FAILED", message=KILLED)
    assert finishing.reason == "Finishing"
    next_one = of_ray_job("", "", before=finishing, failed=1)
    assert (next_one.phase, next_one.reason) == ("Retrying", "PodsStarting")
    assert next_one.message == f"{finishing.message}; the next attempt is starting"
    assert of_ray_job("Initializing", "", before=next_one, failed=1).message == next_one.message


def test_what_pods_waited_for_is_not_told_as_an_attempts_end():
    waiting = TrainJobStatus(
        phase="Retrying", message="1 pod waiting: x", waiting=[Waiting(reason="Unschedulable", pods=1)]
    )
    assert of_ray_job("", "", before=waiting, failed=1).message == "an attempt failed; the next attempt is starting"
