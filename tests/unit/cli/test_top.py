"""The table of `trainjob top`."""

from datetime import UTC, datetime
from typing import Any

import pytest

from trainjob.cli.top import job_lines
from trainjob.cluster import ClusterJob

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
TRAINING = {
    "stage": "Training",
    "step": 1200,
    "steps": 4000,
    "percent": 31.4,
    "eta": 754,
    "samplesPerSecond": 210.4,
    "bestCheckpoint": {"uri": "s3://r/c", "step": 600, "metric": "validation_f1", "value": 0.75},
    "updatedTime": "2026-01-02T11:59:57Z",
}
WAITING = {"phase": "Pending", "reason": "Unschedulable", "workers": {"desired": 4, "ready": 0}}
RUNNING = {"phase": "Running", "reason": "Training", "workers": {"desired": 2, "ready": 2}, "training": TRAINING}


def job(name: str, status: dict[str, Any], gpus: int = 1) -> ClusterJob:
    metadata = {"name": name, "namespace": "team", "uid": name, "creationTimestamp": "2026-01-02T09:00:00Z"}
    return ClusterJob({"metadata": metadata, "spec": {"workers": {"gpus": gpus}}, "status": status})


def cells(found: ClusterJob) -> dict[str, str]:
    headings, row = job_lines([found], False, NOW, 1000)
    starts = [headings.index(name) for name in headings.split()]
    ends = [*starts[1:], None]
    return {name: row[start:end].strip() for name, start, end in zip(headings.split(), starts, ends, strict=True)}


def test_a_job_that_trains():
    assert cells(job("tags", RUNNING)) == {
        "NAME": "tags",
        "STATE": "Training",
        "PERCENT": "31",
        "ETA": "12m",
        "STEP": "1,200/4,000",
        "RATE": "210 samples/s",
        "WORKERS": "2/2",
        "GPUS": "2",
        "BEST": "validation_f1 0.7500",
        "UPDATED": "3s",
    }


def test_what_goes_on_beside_training_steps():
    phase = {"name": "validation", "done": 100, "total": 5000, "unit": "rows"}
    found = cells(job("tags", RUNNING | {"training": TRAINING | {"phase": phase, "tokensPerSecond": 43047.3}}))
    assert (found["STATE"], found["RATE"]) == ("validation", "43,047 tokens/s")


@pytest.mark.parametrize("status", [{}, {"phase": "Running"}, {"training": {}}, {"phase": "Odd", "training": 3}])
def test_a_status_without_progress(status: dict[str, Any]):
    assert cells(job("tags", status))["NAME"] == "tags"


def test_a_retry_keeps_its_progress_but_has_no_rate():
    found = cells(job("tags", RUNNING | {"phase": "Retrying", "reason": "AppFailed"}, gpus=0))
    assert (found["STATE"], found["PERCENT"], found["RATE"], found["ETA"]) == ("AppFailed", "31", "", "")
    assert (found["WORKERS"], found["GPUS"]) == ("2/2", "")


def test_columns_are_left_out_where_there_is_no_room():
    jobs = job("a-rather-long-name-of-a-job", RUNNING), job("digits", WAITING)
    narrow, wide = job_lines(jobs, False, NOW, 80), job_lines(jobs, True, NOW, 200)
    assert [line for line in narrow if len(line) > 80] == []
    assert narrow[0].split() == ["NAME", "STATE", "PERCENT", "ETA", "STEP", "RATE"]
    assert narrow[1].startswith("a-rather-long-nam…   Training")
    assert wide[0].startswith("NAMESPACE   NAME")
    assert "a-rather-long-name-of-a-job" in wide[1]
