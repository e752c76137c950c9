"""Whatever KubeRay, the trainer or a person has written into statuses: there is a status, and the CRD takes it.

`make soak` tries many more.
"""

import copy
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from operator_objects import Object, document

from trainjob.api.trainjob_status import FINAL, TrainJobStatus, read_status
from trainjob_operator.errors import RayJobError
from trainjob_operator.events import events_for_change
from trainjob_operator.reconcile import requeue_after
from trainjob_operator.status import derive, same_operator_fields
from trainjob_operator.train_job import read_train_job, status_patch
from trainjob_operator.verdict import Observed

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
TIMES = st.sampled_from(
    [
        "2026-01-01T11:59:58Z",
        "2026-01-01T12:00:05+02:00",
        "1970-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "2026-01-01t00:00:00x5z",
    ]
)
"""The CRDs take nothing else as a time."""
WORDS = st.sampled_from(["", "x", "OOMKilled", "exit code 137", "é\N{ROCKET}\n", "w" * 5000])
NUMBERS = st.sampled_from([-(2**31), -1, 0, 1, 2, 7, 2**31 - 1])
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.floats(allow_nan=False, allow_infinity=False) | WORDS | TIMES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "message", "uri"]), inner),
    max_leaves=4,
)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Object]:
    """Any of these fields."""
    return st.fixed_dictionaries({}, optional=fields)


def words(*texts: str) -> st.SearchStrategy[str]:
    return st.sampled_from(["", "Unheard", *texts])


DEPLOYMENTS = words(
    "Initializing",
    "Running",
    "Complete",
    "Failed",
    "Suspending",
    "Suspended",
    "Retrying",
    "Waiting",
    "ValidationFailed",
)
REASONS = words("AppFailed", "SubmissionFailed", "DeadlineExceeded", "PreRunningDeadlineExceeded", "ValidationFailed")
CONDITIONS = st.lists(
    st.builds(
        lambda needed, more: {**needed, **more},
        st.fixed_dictionaries(
            {
                "type": words("Ready", "ContainersReady", "PodScheduled", "ReplicaFailure", "DisruptionTarget"),
                "status": st.sampled_from(["True", "False", "Unknown"]),
            }
        ),
        some(reason=words("Unschedulable", "EvictionByEvictionAPI"), message=WORDS, lastTransitionTime=TIMES),
    ),
    max_size=3,
)
RAY_STATUS = some(
    jobDeploymentStatus=DEPLOYMENTS,
    jobStatus=words("PENDING", "RUNNING", "STOPPED", "SUCCEEDED", "FAILED"),
    rayClusterName=words("job-abcde", "job-next"),
    rayClusterStatus=some(conditions=CONDITIONS, state=words("ready", "failed")),
    rayJobInfo=some(startTime=TIMES, endTime=TIMES),
    reason=REASONS,
    message=WORDS,
    failed=NUMBERS,
    succeeded=NUMBERS,
    dashboardURL=WORDS,
    startTime=TIMES,
    endTime=TIMES,
    jobId=WORDS,
)
METADATA = some(
    deletionTimestamp=TIMES, finalizers=st.lists(WORDS, max_size=2), labels=st.just({}), annotations=st.just({})
)
RAY_JOBS = st.builds(
    lambda metadata, spec, status: {"metadata": {"name": "job", **metadata}, "spec": spec, **status},
    METADATA,
    some(suspend=st.booleans(), backoffLimit=NUMBERS),
    some(status=RAY_STATUS),
)
ENDS = some(reason=words("OOMKilled", "Error"), exitCode=NUMBERS, message=WORDS, finishedAt=TIMES)
STATES = some(
    waiting=some(reason=words("ImagePullBackOff", "ContainerCreating"), message=WORDS),
    running=some(startedAt=TIMES),
    terminated=ENDS,
)
CONTAINERS = st.lists(
    st.builds(
        lambda name, more: {"name": name, **more},
        st.sampled_from(["ray-head", "ray-worker", "istio-proxy"]),
        some(state=STATES, lastState=STATES, restartCount=NUMBERS),
    ),
    max_size=2,
)
PODS = st.lists(
    st.builds(
        lambda name, kind, cluster, leaving, spec, more, status: {
            "metadata": {
                "name": name,
                "uid": name,
                "labels": {"ray.io/node-type": kind, **cluster},
                "annotations": more,
                **leaving,
            },
            "spec": spec,
            **status,
        },
        st.sampled_from(["a", "b"]),
        words("head", "worker"),
        st.sampled_from([{}, {"ray.io/cluster": "job-abcde"}, {"ray.io/cluster": "job-next"}]),
        some(deletionTimestamp=TIMES),
        some(nodeName=words("n1")),
        some(**{"trainjob.dev/workers": st.sampled_from(["1", "2", "-1", "many", "", "9" * 5000])}),
        some(
            status=some(
                phase=words("Pending", "Running", "Succeeded", "Failed"),
                reason=words("Evicted"),
                conditions=CONDITIONS,
                containerStatuses=CONTAINERS,
                initContainerStatuses=CONTAINERS,
            )
        ),
    ),
    max_size=3,
)
EVENTS = st.lists(
    st.builds(
        lambda uid, more: {"involvedObject": uid, **more},
        st.sampled_from([{}, {"uid": "a"}]),
        some(reason=words("FailedMount"), message=WORDS),
    ),
    max_size=2,
)
WORKLOADS = st.lists(
    st.builds(
        lambda spec, status: {"metadata": {"name": "w"}, **spec, **status},
        some(spec=some(active=st.booleans())),
        some(status=some(conditions=CONDITIONS)),
    ),
    max_size=2,
)
OBSERVED = st.builds(
    Observed,
    ray_job=st.none() | RAY_JOBS,
    pods=PODS,
    events=EVENTS,
    workloads=WORKLOADS,
    unreadable=st.lists(WORDS, max_size=1),
    error=st.none() | st.builds(RayJobError, words("Deleting", "UnknownNodePool"), WORDS),
)
TRAINING = some(
    stage=words("Preparing", "Training", "Finished") | ANYTHING,
    percent=ANYTHING,
    step=ANYTHING,
    metrics=ANYTHING,
    message=ANYTHING,
    updatedTime=TIMES | ANYTHING,
    bestCheckpoint=ANYTHING,
    latestCheckpoint=ANYTHING,
    failure=some(rank=ANYTHING, exception=ANYTHING, message=ANYTHING, retryable=ANYTHING) | ANYTHING,
    surprise=ANYTHING,
)
ODD_STATUSES = some(
    training=TRAINING | ANYTHING,
    phase=words("Pending", "Starting", "Running", "Retrying", "Suspended", "Succeeded", "Failed") | ANYTHING,
    reason=words("Training", "HeadLost", "Queued", "Finishing") | ANYTHING,
    startTime=TIMES | ANYTHING,
    attempt=ANYTHING,
    conditions=ANYTHING,
    waiting=ANYTHING,
    workers=ANYTHING,
    interruptions=ANYTHING,
    rayClusterName=words("job-abcde") | ANYTHING,
    rayJobName=ANYTHING,
    storage=ANYTHING,
    surprise=ANYTHING,
)
SPECS = some(
    suspend=st.booleans(),
    retries=st.integers(0, 3),
    deadlines=some(total=st.sampled_from(["1s", "1h"]), start=st.just("1s")),
    ttlAfterFinished=st.just("1s"),
)
LABELS = st.sampled_from([{}, {"labels": {"kueue.x-k8s.io/queue-name": "gpus"}}])


@given(LABELS, SPECS, st.none() | ODD_STATUSES, st.lists(OBSERVED, min_size=1, max_size=3))
def test_there_is_a_status_whatever_was_written(
    metadata: Object, spec: Object, status: Object | None, seen: list[Observed]
):
    """Several reconciliations in a row, each of which finds what the last one wrote."""
    body, now = {**document(copy.deepcopy(metadata), **spec), "status": status}, NOW
    job, _ = read_train_job(body)
    for observed in seen:
        before, _ = read_status(body)
        after = derive(job, 1, before, observed, now)
        json.dumps(status_patch(body, after), allow_nan=False)
        list(events_for_change(before, after))
        written = after.model_dump(mode="json", by_alias=True, exclude_none=True)
        assert same_operator_fields(TrainJobStatus.model_validate(written), after)
        assert after.phase is not None
        assert before.phase not in FINAL or (after.phase, after.reason) == (before.phase, before.reason)
        assert after.phase in FINAL or requeue_after(job, after, observed, now) > 0
        assert same_operator_fields(derive(job, 1, after, observed, now), after), "a second look changes its mind"
        body, now = {**body, "status": {**written, "training": (body["status"] or {}).get("training")}}, now + HOUR


HOUR = timedelta(hours=1)
