"""The storage of a run: the job's own, or else that of the operator's settings."""

from typing import Any

import pytest
import yaml
from operator_objects import Object, trainjob
from rendering import operator_settings, rendered, snapshot, worker_pod

from trainjob.api.storage import Storage
from trainjob_operator.errors import RayJobError
from trainjob_operator.names import STORAGE_ANNOTATION
from trainjob_operator.render import render, storage_of, with_storage


def stored(default: Object, kept: Storage | None = None, **spec: Any) -> Any:
    """The storage that a driver in the namespace `team` uses."""
    settings = operator_settings(defaults=default)
    job = with_storage(trainjob(**{"storage": None, **spec}), kept, settings)
    return yaml.safe_load(snapshot(render(job, settings)))["spec"]["storage"]


MINIO: Object = {"endpoint": "http://minio:9000", "secretName": "s3"}
CLAIM: Object = {"persistentVolumeClaim": "runs"}


@pytest.mark.parametrize(
    ("default", "expected"),
    [
        ({"storage": {"uri": "s3://runs", **MINIO}}, {"uri": "s3://runs/team", **MINIO}),
        ({"storage": {"uri": "s3://runs/all/"}}, {"uri": "s3://runs/all/team"}),
        ({"storage": CLAIM}, {"uri": "/mnt/storage"}),  # a claim is the namespace's own
        ({"namespaceStorage": {"team": {"uri": "gs://team"}}}, {"uri": "gs://team"}),
        ({"storage": {"uri": "s3://runs"}, "namespaceStorage": {"team": CLAIM}}, {"uri": "/mnt/storage"}),
        ({"storage": {"uri": "s3://runs"}, "namespaceStorage": {"other": CLAIM}}, {"uri": "s3://runs/team"}),
    ],
)
def test_a_job_without_storage_has_the_settings(default: Object, expected: Object):
    assert stored(default) == expected
    assert stored(default, storage={"uri": "s3://own"}) == {"uri": "s3://own"}
    assert stored(default, Storage(uri="s3://before/team")) == {"uri": "s3://before/team"}


def test_a_default_claim_and_secret_reach_the_pods():
    settings = operator_settings(defaults={"storage": CLAIM | MINIO})
    pod = worker_pod(render(with_storage(trainjob(storage=None), None, settings), settings))
    assert {"name": "trainjob-storage", "persistentVolumeClaim": {"claimName": "runs"}} in pod["volumes"]
    secrets = [env["valueFrom"]["secretKeyRef"]["name"] for env in pod["containers"][0]["env"] if "valueFrom" in env]
    assert set(secrets) == {"s3"}


@pytest.mark.parametrize("own", [{"uri": "gs://a/\N{ROCKET}", **MINIO}, CLAIM])
def test_a_rayjob_says_where_its_run_is_kept(own: Object):
    ray_job = rendered(trainjob(storage=own))
    assert storage_of(ray_job) == Storage(**trainjob(storage=own).model_dump()["spec"]["storage"])
    for written in ("", "runs", "null", "{}", '{"uri": 1}'):
        ray_job["metadata"]["annotations"][STORAGE_ANNOTATION] = written
        assert storage_of(ray_job) is None
    assert storage_of({"metadata": {}}) is storage_of(None) is None


def test_a_job_without_any_storage_is_told_what_to_do():
    with pytest.raises(RayJobError, match=r"^spec\.storage: .*defaults\.storage") as error:
        stored({"namespaceStorage": {"other": CLAIM}})
    assert error.value.reason == "NoStorage"
