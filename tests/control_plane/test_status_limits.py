"""The API server limits what a pod may write into `status.training`, before the operator reads it."""

from typing import Any

import pytest

from cluster.jobs import Jobs
from trainjob.api.training_status import MAX_ENTRIES, MAX_KEY_CHARACTERS, MAX_TEXT_CHARACTERS
from trainjob.crd.definition import UNSEEN


def metrics(count: int) -> dict[str, float]:
    return {f"metric-{number}": 0.5 for number in range(count)}


@pytest.mark.parametrize(
    ("training", "said"),
    [
        ({"failure": {}}, "status.training.failure.exception: Required value"),
        ({"metrics": metrics(60_000)}, "status.training.metrics: Too many"),
        ({"evaluation": metrics(MAX_ENTRIES + 1)}, "status.training.evaluation: Too many"),
        (
            {"metrics": {"m" * (MAX_KEY_CHARACTERS + 1): 0.5}},
            "status.training.metrics: Invalid value.*keys longer than",
        ),
        ({"tuning": {"best": {"parameters": {"p" * 100_000: "1"}}}}, "status.training.tuning.best.parameters: Invalid"),
        ({"message": "m" * (MAX_TEXT_CHARACTERS + 1)}, "status.training.message: Too long"),
        ({"latestCheckpoint": {"uri": "u" * 1_000_000}}, "status.training.latestCheckpoint.uri: Too long"),
    ],
    ids=[
        "a failure without a word",
        "60,000 metrics",
        "too many scores",
        "a metric's long name",
        "a long path",
        "a long message",
        "a long address",
    ],
)
def test_what_is_too_much_is_refused(jobs: Jobs, training: dict[str, Any], said: str):
    jobs.create()
    with pytest.raises(OSError, match=said):
        jobs.report("trainjob", "job", {"training": training})
    assert jobs.status() == UNSEEN


def test_what_is_written_at_most_is_taken(jobs: Jobs):
    jobs.create()
    training = {
        "metrics": metrics(MAX_ENTRIES),
        "evaluation": {"\N{ROCKET}" * MAX_KEY_CHARACTERS: 1.5},
        "message": "m" * MAX_TEXT_CHARACTERS,
        "failure": {"exception": "ValueError"},
    }
    jobs.report("trainjob", "job", {"training": training})
    assert jobs.status() == UNSEEN | {"training": training}
    managed = jobs.kubectl("get", "trainjob", "job", "--output=json", "--show-managed-fields")
    assert "metric-1" in managed
    assert "f:metric-1" not in managed
