"""The status names the pod of the job's head, which alone may report progress."""

from datetime import UTC, datetime
from typing import Any

import pytest
from operator_objects import Object, ray_job, trainjob

from trainjob.api.trainjob_status import TrainJobStatus
from trainjob_operator.status import derive
from trainjob_operator.verdict import Observed

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
HEAD = {"ray.io/cluster": "job-abcde", "ray.io/node-type": "head"}
OWNER = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "job-abcde", "uid": "1", "controller": True}


def head(uid: str = "head", owner: Object | None = None, labels: Object | None = None, **metadata: Any) -> Object:
    """A head pod as KubeRay makes it, but for what is given."""
    own = {"ownerReferences": [OWNER | (owner or {})], "labels": HEAD if labels is None else labels}
    return {"metadata": {"name": "job-abcde-head", "uid": uid, **own, **metadata}, "spec": {}, "status": {}}


def published(*pods: Object, before: TrainJobStatus | None = None, **observed: Any) -> str | None:
    found = Observed(observed.pop("ray_job", ray_job("Running", "RUNNING")), pods=pods, **observed)
    return derive(trainjob(), 1, before or TrainJobStatus(), found, NOW).head_pod_uid


def test_it_is_the_head_of_the_present_raycluster():
    assert published(head()) == "head"


@pytest.mark.parametrize(
    "stranger",
    [
        head(owner={"apiVersion": "batch/v1", "kind": "Job", "name": "job"}),
        head(owner={"name": "job-other"}),
        head(owner={"apiVersion": "evil.io/v1"}),
        head(owner={"kind": "RayService"}),
        head(owner={"controller": False}),
        head(ownerReferences=[]),
        head(labels=HEAD | {"ray.io/node-type": "worker"}),
        head(labels=HEAD | {"ray.io/cluster": "job-earlier"}),
        head(labels={}),
    ],
)
def test_a_pod_that_only_looks_like_it_is_not(stranger: Object):
    assert published(stranger) is None
    assert published(stranger, head("true-one")) == "true-one"


def test_of_two_it_is_the_one_that_stays():
    leaving = head("old", deletionTimestamp="2026-01-01T00:00:05Z", creationTimestamp="2026-01-01T00:00:09Z")
    new = head("new", creationTimestamp="2026-01-01T00:00:04Z")
    older = head("older", creationTimestamp="2026-01-01T00:00:03Z")
    assert published(leaving, new, older) == published(older, new, leaving) == "new"
    assert published(leaving) == "old"


def test_it_is_kept_for_as_long_as_the_raycluster_is_the_same():
    before = TrainJobStatus(ray_cluster_name="job-abcde", head_pod_uid="head")
    assert published(before=before) == "head"
    assert published(before=before, unreadable=["pods: 403"]) == "head"
    assert published(before=before, ray_job=ray_job("Complete", "SUCCEEDED")) == "head"
    assert published(before=before, ray_job=ray_job("Initializing", rayClusterName="job-fghij")) is None
    assert published(before=before, ray_job=ray_job("Suspended", rayClusterName="")) is None
