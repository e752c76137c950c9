"""The pods in a TrainJob's status."""

from datetime import UTC, datetime
from typing import Any

import pytest
from operator_objects import Object, container, pod, ray_job, trainjob
from rendering import rendered, snapshot

from trainjob.api import TrainJob
from trainjob.api.training_status import TrainingStatus
from trainjob.api.trainjob_status import TrainJobStatus
from trainjob_operator.status import derive, is_starting
from trainjob_operator.verdict import Observed


def status_of(found: Observed, job: TrainJob | None = None) -> TrainJobStatus:
    return derive(job or trainjob(), 1, TrainJobStatus(), found, datetime(2026, 1, 1, tzinfo=UTC))


READY: Object = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
NOT_READY: Object = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
OF_LAST_ATTEMPT: Object = {"ray.io/cluster": "job-vwxyz", "ray.io/node-type": "worker"}
HEAD: Object = {"ray.io/cluster": "job-abcde", "ray.io/node-type": "head"}


@pytest.mark.parametrize(
    ("pods", "ready"),
    [
        ([], 0),
        ([pod("a")], 0),
        ([pod("a", **READY)], 2),
        ([pod("a", **READY), pod("b", **NOT_READY)], 2),
        ([pod("a", **READY), pod("b", **READY)], 4),
        ([pod("a", **READY), pod("b", **READY), pod("c", **READY)], 4),
        ([pod("a", **READY), pod("b", labels=OF_LAST_ATTEMPT, **READY)], 2),
        ([pod("a", **READY), pod("b", labels=HEAD, **READY), pod("c", labels={}, **READY)], 2),
        ([pod("a", **READY), {**pod("b", **READY), "metadata": {"name": "b", "uid": "b"}}], 2),
        ([pod("a", **READY), {key: value for key, value in pod("b").items() if key != "status"}], 2),
    ],
)
def test_workers_are_ready_in_this_attempts_ready_pods(pods: list[Object], ready: int):
    job = trainjob(workers={"count": 4, "perPod": 2})
    workers = status_of(Observed(ray_job("Running", "RUNNING"), pods), job=job).workers
    assert workers is not None
    assert (workers.desired, workers.ready) == (4, ready)


@pytest.mark.parametrize(
    ("found", "starting"),
    [
        (pod(node="node-1"), True),
        (pod(), False),
        (pod(node="node-1", **READY), False),
        ({"spec": {"nodeName": "node-1"}}, False),
    ],
)
def test_a_pod_with_a_node_that_does_not_run_yet_is_starting(found: Object, starting: bool):
    assert is_starting(found) is starting


UNPULLED: Object = {"containerStatuses": [container(reason="ErrImagePull", message="not found")]}
WORDS = "2 pods waiting: container ray-worker: not found"


@pytest.mark.parametrize(
    ("deployment", "failed", "phase", "reason", "message"),
    [
        ("Initializing", 0, "Pending", "ErrImagePull", WORDS),
        ("Running", 0, "Starting", "ErrImagePull", WORDS),
        ("Initializing", 1, "Retrying", "ErrImagePull", WORDS),
    ],
)
def test_why_pods_wait_is_why_the_job_waits(deployment: str, failed: int, phase: str, reason: str, message: str):
    pods = [pod("a", **UNPULLED), pod("b", **UNPULLED), pod("old", labels=OF_LAST_ATTEMPT, **UNPULLED)]
    found = status_of(Observed(ray_job(deployment, failed=failed), pods), job=trainjob(retries=1))
    assert (found.phase, found.reason, found.message) == (phase, reason, message)
    assert [(item.reason, item.pods) for item in found.waiting] == [("ErrImagePull", 2)]


def test_one_pod_and_no_pod_are_told_well():
    one = status_of(Observed(ray_job("Initializing"), [pod(**UNPULLED)]))
    assert one.message == "1 pod waiting: container ray-worker: not found"
    refusal = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota: gpus"}
    none = status_of(Observed(ray_job("Initializing", rayClusterStatus={"conditions": [refusal]})))
    assert (none.reason, none.message) == ("QuotaExceeded", "exceeded quota: gpus")


def test_a_running_job_tells_of_waiting_pods_beside_its_reason():
    found = status_of(Observed(ray_job("Running", "RUNNING"), [pod(**UNPULLED)]))
    assert (found.phase, found.reason) == ("Running", "Training")
    assert [item.reason for item in found.waiting] == ["ErrImagePull"]


@pytest.mark.parametrize(("deployment", "suspend"), [("Complete", False), ("Failed", False), ("Suspending", True)])
def test_where_no_pod_is_wanted_none_waits(deployment: str, suspend: bool):
    observed = Observed(ray_job(deployment, "SUCCEEDED"), [pod(**UNPULLED)])
    assert status_of(observed, job=trainjob(suspend=suspend)).waiting == []


OLD_HEAD: Object = HEAD | {"ray.io/cluster": "job-vwxyz"}


@pytest.mark.parametrize(
    ("heads", "phase", "reason"),
    [
        ([pod("head", labels=HEAD, phase="Running")], "Running", "Training"),
        ([pod("head", labels=HEAD)], "Retrying", "HeadLost"),
        ([pod("head", labels=HEAD, phase="Failed")], "Retrying", "HeadLost"),
        ([pod("head", labels=HEAD, phase="Failed"), pod("next", labels=HEAD, phase="Running")], "Running", "Training"),
        ([pod("head", labels=OLD_HEAD, phase="Failed")], "Running", "Training"),
    ],
)
def test_without_its_head_a_job_is_not_training(heads: list[Object], phase: str, reason: str):
    status = status_of(Observed(ray_job("Running", "RUNNING"), heads))
    assert (status.phase, status.reason) == (phase, reason)


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
OLD, NEW = "2026-01-01T11:59:55Z", "2026-01-01T12:00:05Z"
JUST_BEFORE = "2026-01-01T11:59:58Z"


def head(start: str, **of_container: Any) -> Object:
    """A head pod whose container runs since then."""
    running = {"name": "ray-head", "state": {"running": {"startedAt": start}}, **of_container}
    return pod("head", labels=HEAD, phase="Running", containerStatuses=[running])


@pytest.mark.parametrize("ran", ["", "RUNNING"])
@pytest.mark.parametrize(
    ("reason", "taken", "found", "is_lost"),
    [
        ("HeadLost", OLD, head(NEW), True),
        ("HeadLost", NEW, head(NEW), False),
        ("HeadLost", OLD, head(OLD), False),
        ("HeadLost", OLD, head(JUST_BEFORE), True),  # the word at noon is the old driver's last one
        ("Training", OLD, head(NEW, restartCount=1), True),
        ("Training", OLD, head(OLD, restartCount=1), False),
        ("Training", OLD, head(OLD, state={"terminated": {"exitCode": 1}}), True),
        ("PodsReady", OLD, head(NEW), False),  # of a new attempt
    ],
)
def test_a_lost_head_is_lost_until_ray_or_the_driver_says_that_a_new_one_has_the_job(
    ran: str, reason: str, taken: str, found: Object, is_lost: bool
):
    training = TrainingStatus(stage="Training", updated_time=NOON)
    before = TrainJobStatus(phase="Retrying", reason=reason, training=training)
    observed = Observed(ray_job("Running", ran, rayJobInfo={"startTime": taken}), [found])
    status = derive(trainjob(), 1, before, observed, NOON)
    assert (status.reason == "HeadLost") == is_lost
    assert not is_lost or status.phase == "Retrying"


def test_a_head_that_ran_out_of_memory_is_said_to():
    ended = {"state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}
    lost = pod("head", labels=HEAD, phase="Failed", containerStatuses=[{"name": "ray-head", **ended}])
    found = status_of(Observed(ray_job("Running", "RUNNING"), [lost]))
    assert found.message == "the head pod ran out of memory; the driver will continue from the latest checkpoint"
    ended_job = ray_job("Failed", "", reason="SubmissionFailed", message="BackoffLimitExceeded")
    assert "ran out of memory: BackoffLimitExceeded" in str(status_of(Observed(ended_job, [lost])).message)


@pytest.mark.parametrize(
    ("workers", "size", "said"),
    [
        ({"count": 4, "minimum": 2}, 3, "3 of 4 workers train: more join when their pods can run"),
        ({"count": 4, "minimum": 2}, 4, ""),
        ({"count": 4, "minimum": 2}, None, ""),
        ({"count": 4}, 3, ""),
    ],
)
def test_fewer_workers_than_asked_for_are_told(workers: Object, size: int | None, said: str):
    before = TrainJobStatus(training=TrainingStatus(stage="Training", workers=size))
    found = Observed(ray_job("Running", "RUNNING"), [])
    status = derive(trainjob(workers=workers), 1, before, found, datetime(2026, 1, 1, tzinfo=UTC))
    assert (status.reason, status.message) == ("Training", said)


@pytest.mark.parametrize(
    ("of_head", "tells"),
    [
        (trainjob(workers={"count": 1}), True),
        (trainjob(workers={"count": 2, "gpus": 1}), True),
        (trainjob(workers={"count": 2}), False),
        (trainjob(workers={"count": 2}, retries=3), False),
        (None, False),
    ],
)
def test_it_tells_that_other_workers_wait_for_the_next_attempt(of_head: TrainJob | None, tells: bool):
    found = ray_job("Running", "RUNNING")
    found["spec"] = rendered(trainjob(workers={"count": 2}))["spec"]
    head = pod("head", labels={"ray.io/cluster": "job-abcde", "ray.io/node-type": "head"}, phase="Running")
    if of_head is not None:
        head["metadata"]["annotations"]["trainjob.dev/trainjob"] = snapshot(rendered(of_head))
    of_another = pod("old", labels={"ray.io/cluster": "job-before", "ray.io/node-type": "head"}, phase="Running")
    of_another["metadata"]["annotations"]["trainjob.dev/trainjob"] = snapshot(rendered(trainjob(workers={"count": 3})))
    message = status_of(Observed(found, [head, of_another])).message or ""
    assert ("spec.workers was changed: the new value takes effect in the next attempt" in message) == tells


@pytest.mark.parametrize(("retries", "attempt", "phase"), [(0, 1, "Failed"), (1, 1, "Retrying"), (1, 2, "Failed")])
def test_a_lost_head_that_kuberay_does_not_retry_is_an_attempt(retries: int, attempt: int, phase: str):
    before = TrainJobStatus(phase="Retrying", reason="HeadLost", attempt=attempt)
    lost = pod("head", labels=HEAD, containerStatuses=[container(reason="ImagePullBackOff")])
    found = Observed(ray_job("Failed", reason="JobStatusCheckTimeoutExceeded", message="300s", failed=1), [lost])
    for _ in range(2):
        before = derive(trainjob(retries=retries), 1, before, found, NOON)
        assert (before.phase, before.reason) == (phase, "JobStatusCheckTimeoutExceeded")
        assert before.message == "300s"
        assert before.attempt == (attempt + 1 if phase == "Retrying" else attempt)
    finished = TrainJobStatus(phase="Running", attempt=attempt, training=TrainingStatus(stage="Finished"))
    succeeded = derive(trainjob(retries=retries), 1, finished, found, NOON)
    assert (succeeded.phase, succeeded.attempt) == ("Succeeded", attempt)
