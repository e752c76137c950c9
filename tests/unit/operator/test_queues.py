"""Jobs in a queue of Kueue: evictions are reported, and a running RayJob keeps its queue."""

from datetime import UTC, datetime
from typing import Any

import pytest
from operator_objects import Object, ray_job, trainjob

from trainjob.api.trainjob_status import TrainJobStatus
from trainjob_operator.drift import has_drifted
from trainjob_operator.names import MANAGER, QUEUE_LABEL
from trainjob_operator.queues import hold_queue, keep_tolerations, pod_specs, was_deactivated_by_operator
from trainjob_operator.render import render
from trainjob_operator.settings import Settings
from trainjob_operator.status import derive
from trainjob_operator.verdict import Observed

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TIMEOUT = "Exceeded the PodsReady timeout team/rayjob-job"
NO_QUOTA = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": "insufficient quota"}
EVICTED = {"type": "Evicted", "status": "True", "reason": "PodsReadyTimeout", "message": TIMEOUT}
BEFORE = EVICTED | {"status": "False", "reason": "QuotaReserved", "message": f"Previously: {TIMEOUT}"}
TOLD = f"Kueue has evicted the job 3 times (PodsReadyTimeout): {TIMEOUT}"


def queued(queue: str) -> Object:
    return {"labels": {QUEUE_LABEL: queue}}


def set_by(manager: str, queue: str) -> Object:
    """The metadata of a RayJob whose queue somebody has set."""
    fields = {"f:metadata": {"f:labels": {f"f:{QUEUE_LABEL}": {}}}}
    return queued(queue) | {"managedFields": [{"manager": manager, "operation": "Apply", "fieldsV1": fields}]}


def workload(*conditions: Object, count: int = 3, active: bool = True) -> Object:
    evictions = [{"reason": "PodsReadyTimeout", "underlyingCause": "WaitForStart", "count": count}]
    status = {"conditions": list(conditions), "schedulingStats": {"evictions": evictions}}
    return {"metadata": {"name": "rayjob-job"}, "spec": {"active": active}, "status": status}


def message(observed: Any, *workloads: Object) -> str:
    status = derive(trainjob(queued("a")), 1, TrainJobStatus(), Observed(observed, workloads=workloads), NOW)
    return str(status.message)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (workload(NO_QUOTA, EVICTED), f"insufficient quota; {TOLD}"),
        (workload(NO_QUOTA, EVICTED, count=1), f"insufficient quota; {TOLD.replace('3 times', 'once')}"),
        (workload(NO_QUOTA), "insufficient quota"),
        (
            workload(EVICTED, active=False),
            f"the Workload rayjob-job is deactivated: its spec.active is false; {TOLD}",
        ),
    ],
)
def test_a_queue_says_that_it_has_evicted_the_job(found: Object, told: str):
    assert message(ray_job("Suspended", suspend=True), found) == told


def test_a_job_that_waits_for_its_pods_again_says_so_and_one_that_trains_does_not():
    again = f"Kueue has evicted the job 3 times (PodsReadyTimeout): Previously: {TIMEOUT}"
    assert message(ray_job("Initializing"), workload(BEFORE)) == again
    assert message(ray_job("Running", "RUNNING"), workload(BEFORE)) == ""


@pytest.mark.parametrize(
    ("asked", "metadata", "kept"),
    [
        ({}, set_by(MANAGER, "a"), "a"),
        (queued("b"), set_by(MANAGER, "a"), "a"),
        (queued("b"), set_by("kubectl", "a"), "a"),
        (queued("a"), {}, None),
    ],
)
def test_a_rayjob_that_runs_keeps_its_queue(asked: Object, metadata: Object, kept: str | None):
    found = ray_job("Running", "RUNNING")
    found["metadata"] |= metadata
    job, error = hold_queue(trainjob(asked), found)
    assert job.metadata.labels.get(QUEUE_LABEL) == kept
    assert error is not None
    assert error.reason == "QueueChanged"


def test_a_rayjob_in_a_queue_keeps_the_tolerations_that_kueue_has_added():
    own, added = {"key": "gpu", "operator": "Exists"}, {"key": "spot", "operator": "Exists"}
    job = trainjob(queued("a"), pods={"tolerations": [own]})
    found, desired = (render(job, Settings(image="image")) for _ in range(2))
    for spec in pod_specs(found):
        spec["tolerations"] = [own, added]
    keep_tolerations(desired, found)
    assert not has_drifted(found, desired)
    plain = render(trainjob(queued("a")), Settings(image="image"))
    keep_tolerations(plain, found)
    assert not any("tolerations" in spec for spec in pod_specs(plain)), "they are Kueue's alone"
    keep_tolerations(desired, {"spec": {"rayClusterSpec": {"workerGroupSpecs": None}}})


def test_a_job_that_its_user_has_suspended_enters_a_queue_when_it_is_resumed():
    held = ray_job("Suspended", suspend=True)
    job, error = hold_queue(trainjob({"labels": {QUEUE_LABEL: "a", "team": "b"}}, suspend=True), held)
    assert (job.metadata.labels, error) == ({"team": "b"}, None)
    assert hold_queue(job := trainjob(queued("a")), held) == (job, None)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, None),
        (queued("b"), {"metadata": set_by(MANAGER, "a"), "spec": {"suspend": True}}),
        ({}, {"metadata": set_by(MANAGER, "a"), "spec": {"suspend": True}}),
        (queued("a"), {"metadata": queued("a"), "spec": {}}),
        ({}, {"metadata": queued("default"), "spec": {}}),
        ({}, {"metadata": {"labels": None}, "spec": {}}),
    ],
)
def test_the_queue_is_the_trainjobs_otherwise(asked: Object, found: Object | None):
    assert hold_queue(job := trainjob(asked), found) == (job, None)


@pytest.mark.parametrize(
    ("manager", "field", "expected"),
    [(MANAGER, "active", True), (MANAGER, "priority", False), ("kubectl", "active", False)],
)
def test_the_field_managers_tell_who_deactivated_a_workload(manager: str, field: str, expected: bool):
    entries = [{"manager": "kueue"}, {"manager": manager, "fieldsV1": {"f:spec": {f"f:{field}": {}}}}]
    assert was_deactivated_by_operator({"metadata": {"managedFields": entries}}) is expected
