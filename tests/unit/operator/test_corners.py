"""Rare combinations of fields, names and times."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from operator_objects import pod, ray_job, trainjob
from test_job_pods import SETTINGS, templates

from trainjob.api.load import load_trainjob
from trainjob.api.training_status import Failure, TrainingStatus
from trainjob.api.trainjob_status import TrainJobStatus
from trainjob_operator.diagnosis import diagnose
from trainjob_operator.drift import has_drifted
from trainjob_operator.errors import RayJobError
from trainjob_operator.render import render
from trainjob_operator.settings import Settings
from trainjob_operator.status import derive
from trainjob_operator.verdict import Observed

FIRST, LAST = "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"


@pytest.mark.parametrize("config", [{"x": "\N{ROCKET}"}, {"x": "\x7f"}, {"x": "\x85"}, {"k" * 1100: 1}])
def test_the_driver_reads_any_text(tmp_path: Path, config: dict[str, str]):
    job = trainjob(model={"function": {"name": "a:b", "config": config}})
    annotations = templates(job)["head"]["metadata"]["annotations"]
    (tmp_path / "trainjob.yaml").write_text(annotations["trainjob.dev/trainjob"])
    assert load_trainjob(tmp_path / "trainjob.yaml").spec.model == job.spec.model


def test_a_spec_too_large_for_an_annotation_is_refused():
    job = trainjob(model={"function": {"name": "a:b", "config": {"x": "x" * 300_000}}})
    with pytest.raises(RayJobError, match=r"function\.config"):
        render(job, SETTINGS)


def test_a_claim_keeps_the_datasets_endpoint():
    job = trainjob(storage={"persistentVolumeClaim": "runs", "endpoint": "http://minio:9000", "secretName": "minio"})
    annotations = templates(job)["head"]["metadata"]["annotations"]
    storage = yaml.safe_load(annotations["trainjob.dev/trainjob"])["spec"]["storage"]
    assert storage == {"uri": "/mnt/storage", "endpoint": "http://minio:9000"}


def test_the_settings_cpus_reach_the_trainer():
    settings = Settings.model_validate({"image": "i", "defaults": {"workerCpus": 4}})
    annotations = templates(trainjob(), settings)["head"]["metadata"]["annotations"]
    assert yaml.safe_load(annotations["trainjob.dev/trainjob"])["spec"]["workers"]["cpus"] == 4


def test_a_pod_has_places_for_its_workers_only():
    job = trainjob(workers={"count": 4, "perPod": 2})
    (group,) = render(job, SETTINGS)["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    assert json.loads(json.loads(group["rayStartParams"]["resources"])) == {"trainjob_worker": 2}


def test_two_mounts_of_one_volume_are_not_a_difference():
    mounts = [{"name": "v", "mountPath": "/a", "subPath": "a"}, {"name": "v", "mountPath": "/b", "subPath": "b"}]
    rendered = render(trainjob(pods={"volumes": [{"name": "v", "emptyDir": {}}], "volumeMounts": mounts}), SETTINGS)
    assert not has_drifted(rendered, rendered)


def test_a_pod_that_is_going_holds_nothing_back():
    going = pod(node="n1")
    event = {"involvedObject": {"uid": going["metadata"]["uid"]}, "reason": "FailedMount", "message": "no"}
    assert diagnose([going], None, [event]) != []
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert diagnose([going], None, [event]) == []


def test_the_jobs_variables_and_pull_secrets_take_the_place_of_the_operators():
    pods = {"env": [{"name": "AWS_SESSION_TOKEN", "value": "x"}], "imagePullSecrets": [{"name": "registry"}]}
    settings = Settings.model_validate({"image": "i", "imagePullSecrets": ["registry"]})
    spec = templates(trainjob(storage={"uri": "s3://r", "secretName": "m"}, pods=pods), settings)["head"]["spec"]
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    token = [variable for variable in spec["containers"][0]["env"] if variable["name"] == "AWS_SESSION_TOKEN"]
    assert token == [{"name": "AWS_SESSION_TOKEN", "value": "x"}]


def test_a_pools_own_fields_stay_where_the_job_has_none():
    extra = {"schedulerName": "packing", "volumes": [{"name": "v", "emptyDir": {}}]}
    settings = Settings.model_validate({"image": "i", "nodePools": {"p": {"pod": extra}}})
    spec = templates(trainjob(workers={"nodePool": "p"}), settings)["worker"]["spec"]
    assert spec["schedulerName"] == "packing"
    assert extra["volumes"][0] in spec["volumes"]


def test_an_attempts_failure_does_not_hide_why_the_next_one_ended():
    failure = Failure(rank=1, exception="ValueError", message="of attempt 1")
    before = TrainJobStatus(training=TrainingStatus(failure=failure), attempt=2)
    ended = ray_job("Failed", "", reason="PreRunningDeadlineExceeded", failed=2)
    status = derive(trainjob(retries=1), 1, before, Observed(ended), datetime.now(UTC))
    assert status.reason == "PreRunningDeadlineExceeded"


@pytest.mark.parametrize(("start", "since"), [(FIRST, LAST), (LAST, FIRST)])
@pytest.mark.parametrize("reason", ["Training", "Queued"])
def test_a_status_may_hold_any_time(start: str, since: str, reason: str):
    """A time in a queue moves the start, and so the deadline, as far as time goes."""
    condition = {"type": "Suspended", "status": "True", "reason": reason, "message": "", "lastTransitionTime": since}
    before = TrainJobStatus.model_validate({"startTime": start, "reason": reason, "conditions": [condition]})
    found = derive(
        trainjob(deadlines={"total": "9999d"}), 1, before, Observed(ray_job("Running", "RUNNING")), datetime.now(UTC)
    )
    assert (found.phase, found.reason) == (
        ("Failed", "DeadlineExceeded") if start == FIRST else ("Running", "Training")
    )
