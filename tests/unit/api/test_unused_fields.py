"""Fields that a function does not use are named."""

import warnings
from typing import Any

import pytest

from trainjob.api import TrainJob
from trainjob.api.defaults import with_defaults
from trainjob.api.unused_fields import tell_of_unused_fields
from trainjob.errors import Notice


def function_of(**spec: Any) -> TrainJob:
    spec = {"model": {"function": {"name": "own:loop"}}, "dataset": {"train": {"uri": "s3://data/rows.csv"}}} | spec
    header = {"apiVersion": "trainjob.dev/v1alpha1", "kind": "TrainJob", "metadata": {"name": "job"}}
    return TrainJob.model_validate({**header, "spec": spec})


def test_fields_of_training_are_named() -> None:
    job = function_of(training={"epochs": 3, "seed": 7, "optimizer": {"sgd": {}}}, checkpoints={"everySteps": 5})
    expected = (
        r"spec\.training\.epochs, spec\.training\.optimizer, spec\.checkpoints\.everySteps have no effect on a function"
    )
    with pytest.warns(Notice, match=expected):
        tell_of_unused_fields(job)
    with pytest.warns(Notice, match=r"spec\.dataset\.text has no effect on a function"):
        tell_of_unused_fields(function_of(dataset={"train": {"uri": "s3://data/rows.csv"}, "text": ["title"]}))


@pytest.mark.parametrize("job", [function_of(training={"seed": 7}), with_defaults(function_of(workers={"count": 3}))])
def test_defaults_are_not(job: TrainJob) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tell_of_unused_fields(job)
