"""Fields of an earlier status that are kept when the cluster no longer shows them."""

from datetime import UTC, datetime

import pytest
from operator_objects import Object, container, pod, ray_job, trainjob

from trainjob.api.storage import Storage
from trainjob.api.trainjob_status import Interruptions, TrainJobStatus
from trainjob_operator.errors import RayJobError
from trainjob_operator.render import render
from trainjob_operator.settings import Settings
from trainjob_operator.status import derive
from trainjob_operator.verdict import Observed

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
EARLIER = Storage(uri="s3://earlier")
PRESENT = Storage(uri="s3://runs")
QUEUE: Object = {"labels": {"kueue.x-k8s.io/queue-name": "gpus"}}
BEFORE = TrainJobStatus(
    phase="Running",
    reason="Training",
    ray_job_name="earlier",
    storage=EARLIER,
    interruptions=Interruptions(count=2, last_reason="Evicted", last_pod="a", last_time=NOW),
)
STORED = render(trainjob(storage={"uri": "s3://runs"}), Settings(image="i"))
REFUSED = RayJobError("UnknownNodePool", "there is no node pool h100")


@pytest.mark.parametrize(
    ("found", "storage"),
    [
        (Observed(STORED), PRESENT),
        (Observed(STORED, error=REFUSED), PRESENT),
        (Observed(ray_job("Running", "RUNNING")), EARLIER),
        (Observed(), EARLIER),
        (Observed(error=REFUSED), EARLIER),
    ],
)
def test_storage_is_that_of_the_rayjob_that_was_written(found: Observed, storage: Storage):
    assert derive(trainjob(), 1, BEFORE, found, NOW).storage == storage


def test_the_rayjobs_name_and_interruptions_outlast_it():
    status = derive(trainjob(), 1, BEFORE, Observed(), NOW)
    assert (status.ray_job_name, status.interruptions) == ("earlier", BEFORE.interruptions)
    assert derive(trainjob(), 1, BEFORE, Observed(ray_job()), NOW).ray_job_name == "job"


@pytest.mark.parametrize("unreadable", [(), ("pods: 403",)])
def test_interruptions_are_kept_at_the_end_and_while_pods_cannot_be_read(unreadable: tuple[str, ...]):
    for found in (ray_job("Running", "RUNNING"), ray_job("Complete", "SUCCEEDED")):
        status = derive(trainjob(), 1, BEFORE, Observed(found, unreadable=unreadable), NOW)
        assert status.interruptions == BEFORE.interruptions


@pytest.mark.parametrize(
    ("deployment", "metadata", "spec", "reason"),
    [
        ("Suspended", None, {"suspend": True}, "Suspended"),
        ("Suspended", QUEUE, {}, "Queued"),
        ("Suspending", None, {"suspend": True}, "Suspending"),
    ],
)
def test_a_job_that_is_held_back_waits_for_no_pod(deployment: str, metadata: Object | None, spec: Object, reason: str):
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreateWorkerPod", "message": "quota"}
    held = ray_job(deployment, suspend=True, rayClusterStatus={"conditions": [failure]})
    stuck = pod(containerStatuses=[container(reason="ImagePullBackOff")])
    pods = (stuck,) if reason == "Suspending" else ()
    status = derive(trainjob(metadata, **spec), 1, TrainJobStatus(), Observed(held, pods=pods), NOW)
    assert (status.reason, status.waiting) == (reason, [])
    starting = ray_job("Initializing", rayClusterStatus={"conditions": [failure]})
    assert derive(trainjob(), 1, TrainJobStatus(), Observed(starting), NOW).waiting != []


def test_a_deadline_that_is_over_says_so():
    before = TrainJobStatus(phase="Running", reason="Training", start_time=datetime(2026, 1, 1, 10, tzinfo=UTC))
    status = derive(trainjob(deadlines={"total": "1h"}), 1, before, Observed(ray_job("Running", "RUNNING")), NOW)
    assert (status.reason, status.message) == ("DeadlineExceeded", "not done within spec.deadlines.total, 1h")
