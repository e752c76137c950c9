"""A pod that is lost in the midst of training leaves a trace in the TrainJob's status and events."""

from datetime import UTC, datetime
from typing import Any

import pytest
from operator_objects import Object, pod, ray_job, trainjob

from trainjob.api import TrainJob
from trainjob.api.trainjob_status import TrainJobStatus
from trainjob_operator.events import events_for_change
from trainjob_operator.status import derive
from trainjob_operator.verdict import Observed

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
JOB = trainjob(workers={"count": 4, "perPod": 2})
READY: Object = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
KILLED: Object = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
HEAD = pod("head", labels={"ray.io/cluster": "job-abcde", "ray.io/node-type": "head"}, **READY)
ALL = [HEAD, pod("a", **READY), pod("b", **READY)]


def status_of(
    pods: list[Object], before: TrainJobStatus | None = None, job: TrainJob = JOB, **ray: Any
) -> TrainJobStatus:
    observed = Observed(ray_job("Running", "RUNNING", **ray), pods)
    return derive(job, 1, before or TrainJobStatus(), observed, NOW)


def leaving(*conditions: Object) -> Object:
    found = pod("b", phase="Running", conditions=[*READY["conditions"], *conditions])
    found["metadata"]["deletionTimestamp"] = "2026-01-01T12:00:00Z"
    return found


def with_container(**states: Any) -> Object:
    return pod("b", phase="Running", containerStatuses=[{"name": "ray-worker", "state": {}, **states}])


@pytest.mark.parametrize(
    ("lost", "name", "reason"),
    [
        (with_container(state=KILLED), "b", "OOMKilled"),
        (with_container(lastState=KILLED, restartCount=1), "b", "OOMKilled"),
        (pod("b", phase="Failed", reason="Evicted"), "b", "Evicted"),
        (pod("b", phase="Failed"), "b", "Failed"),
        (leaving(), "b", "Deleted"),
        (leaving({"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}), "b", None),
        (pod("b", phase="Running", conditions=[{"type": "ContainersReady", "status": "True"}]), "b", "NodeLost"),
        (pod("b", phase="Running"), "b", "NotReady"),
        (pod("new"), None, "Deleted"),
    ],
)
def test_a_lost_worker_pod_is_counted_named_and_told(lost: Object, name: str | None, reason: str | None):
    reason = reason or "DeletionByTaintManager"
    before = status_of(ALL)
    after = status_of([HEAD, ALL[1], lost], before)
    assert before.interruptions is None
    assert after.interruptions is not None
    found = after.interruptions
    assert (found.count, found.last_pod, found.last_reason, found.last_time) == (1, name, reason, NOW)
    assert (after.phase, after.reason) == ("Running", "Training")
    what = f"{f'pod {name}' if name else 'a pod'} was lost ({reason})"
    assert after.message is not None
    assert after.message.startswith(f"{what} at 2026-01-01T12:00:00Z; training continues from its latest checkpoint")
    events = list(events_for_change(before, after))
    assert ("Interrupted", f"{what} while training ran", True) in events


def test_an_interruption_is_counted_once_and_stays_said():
    down = status_of([HEAD, ALL[1], with_container(state=KILLED)], status_of(ALL))
    still = status_of([HEAD, ALL[1], with_container(lastState=KILLED, restartCount=1)], down)
    back = status_of([HEAD, ALL[1], pod("b", **READY)], still)
    assert down.interruptions == still.interruptions == back.interruptions
    assert back.message == down.message
    again = status_of([HEAD, ALL[1]], back)
    assert again.interruptions is not None
    assert again.interruptions.count == 2


def test_a_lost_head_is_an_interruption_and_the_workers_that_start_anew_are_not():
    lost = pod("head", labels=HEAD["metadata"]["labels"], containerStatuses=[{"name": "ray-head", "state": KILLED}])
    down = status_of([lost, *ALL[1:]], status_of(ALL))
    assert (down.phase, down.reason) == ("Retrying", "HeadLost")
    assert down.interruptions is not None
    assert (down.interruptions.count, down.interruptions.last_pod) == (1, "head")
    assert down.interruptions.last_reason == "OOMKilled"
    assert status_of([lost, pod("a"), pod("b")], down).interruptions == down.interruptions


@pytest.mark.parametrize(
    "after",
    [
        Observed(ray_job("Running", "SUCCEEDED"), ALL[:2]),
        Observed(ray_job("Complete", "SUCCEEDED"), []),
        Observed(ray_job("Running", "RUNNING", suspend=True), ALL[:2]),
        Observed(ray_job("Retrying", "FAILED"), ALL[:2]),
        Observed(ray_job("Running", "RUNNING", rayClusterName="job-next"), []),
        Observed(ray_job("Running", "RUNNING"), [], unreadable=["pods cannot be read: forbidden"]),
        Observed(ray_job("Running", "RUNNING"), ALL),
    ],
)
def test_pods_that_go_for_another_reason_are_no_interruption(after: Observed):
    assert derive(JOB, 1, status_of(ALL), after, NOW).interruptions is None


def test_fewer_workers_that_are_asked_for_are_no_interruption():
    """The pods stay until the next attempt."""
    fewer = trainjob(workers={"count": 2, "perPod": 2})
    after = status_of(ALL, status_of(ALL), fewer)
    assert after.workers is not None
    assert (after.workers.desired, after.workers.ready, after.interruptions) == (2, 2, None)
    lost = status_of([HEAD, pod("a", phase="Failed"), pod("b", phase="Failed")], after, fewer)
    assert lost.interruptions is not None
