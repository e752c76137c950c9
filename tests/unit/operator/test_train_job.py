"""TrainJobs that were admitted by a CRD of another version, and statuses with odd parts, are read all the same."""

from typing import Any

import pytest
from operator_objects import Object, document, trainjob

from trainjob.api.trainjob_status import read_status
from trainjob_operator.train_job import read_train_job


def test_a_valid_trainjob_is_read_whole():
    assert read_train_job(document(retries=3)) == (trainjob(retries=3), None)


def test_several_labels_may_have_the_earlier_default_of_their_loss():
    """API servers filled in crossEntropy; such a classifier was trained with binaryCrossEntropy nevertheless."""
    model = {"textClassifier": {"encoder": {}, "loss": {"crossEntropy": {}}}}
    dataset = {"train": {"uri": "s3://data/a.csv"}, "text": ["text"], "labels": ["a", "b"]}
    body = document(model=model, dataset=dataset)
    job, error = read_train_job(body)
    assert error is None
    assert job.spec.model.classifier is not None
    assert job.spec.model.classifier.loss.chosen == "binary_cross_entropy"


def test_of_an_invalid_spec_the_valid_fields_still_act():
    body = document(retries=3, suspend=True, deadlines={"total": "1h"}, workers={"count": 4}, ttlAfterFinished="1d")
    body["spec"] |= {"model": {"oracle": {}}, "storage": {"uri": ""}, "surprise": 1}
    job, error = read_train_job(body)
    assert error is not None
    assert error.reason == "InvalidSpec"
    assert "spec.model.oracle" in str(error)
    spec = job.spec
    assert (spec.retries, spec.suspend, spec.deadlines.total, spec.workers.count) == (3, True, "1h", 4)
    assert (spec.ttl_after_finished, spec.storage, job.metadata.name) == ("1d", None, "job")


@pytest.mark.parametrize(
    ("field", "value", "default"), [("retries", -1, 0), ("ttlAfterFinished", "soon", None), ("suspend", "maybe", False)]
)
def test_of_an_invalid_field_the_default_counts(field: str, value: Any, default: Any):
    job, error = read_train_job(document(**{field: value}))
    assert f"spec.{field}" in str(error)
    assert job.spec.model_dump(by_alias=True, include={"retries", "ttl_after_finished", "suspend"})[field] == default


def test_a_status_that_can_be_read_has_no_problem():
    status, problems = read_status({"status": {"phase": "Running", "surprise": 1, "training": {"surprise": 1}}})
    assert (status.phase, problems) == ("Running", [])
    assert read_status({})[1] == read_status({"status": None})[1] == []


def test_empty_fields_of_a_failure_may_be_missing():
    """A bare `assert` has no message, and what is empty is not written."""
    failure = {"rank": 1, "exception": "AssertionError"}
    status, problems = read_status({"status": {"training": {"failure": failure, "bestCheckpoint": {"uri": "s3://r"}}}})
    assert problems == []
    assert status.training is not None
    assert status.training.failure is not None
    assert (status.training.failure.message, status.training.failure.exception) == ("", "AssertionError")


@pytest.mark.parametrize(
    ("odd", "field"),
    [
        ({"training": {"stage": "Finished", "failure": {"rank": "first"}}}, "training.failure"),
        ({"training": {"stage": "Finished", "metrics": {"loss": "low"}}}, "training.metrics"),
        ({"training": "none"}, "training"),
        ({"conditions": [{"type": "Odd"}]}, "conditions"),
        ({"waiting": [{}]}, "waiting"),
        ({"phase": "Thinking"}, "phase"),
    ],
)
def test_what_cannot_be_read_counts_as_absent_and_is_said(odd: Object, field: str):
    status, [problem] = read_status({"status": {"rayJobName": "job", **odd}})
    assert status.ray_job_name == "job"
    assert problem.startswith(f"status cannot be read: {field}")
    assert status.training is None or status.training.stage == "Finished"
