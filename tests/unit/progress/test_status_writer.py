"""The writer sends the changed parts of a snapshot, at its own pace."""

import json
import math
from datetime import UTC, datetime

import pytest

from trainjob.api.training_status import (
    MAX_ENTRIES,
    MAX_KEY_CHARACTERS,
    MAX_TEXT_CHARACTERS,
    CheckpointStatus,
    Failure,
    TrainingStatus,
)
from trainjob.progress.api_server import RequestRefused
from trainjob.progress.status_writer import (
    WriteResult,
    as_json,
    pause_after,
    result_of,
    retries_in,
)

AT = datetime(2026, 1, 1, 12, 0, 5, 999, tzinfo=UTC)


def test_a_snapshot_is_written_short():
    status = TrainingStatus(
        stage="Training",
        epoch=2,
        percent=33.333333,
        eta=125.678,
        loss=0.123456789,
        learning_rate=1.23456789e-5,
        samples_per_second=98765.4321,
        metrics={"validation_loss": 2 / 3},
        latest_checkpoint=CheckpointStatus(uri="s3://runs/a", step=7, value=1 / 3),
    )
    assert as_json(status, AT) == {
        "stage": "Training",
        "epoch": 2,
        "epochsCompleted": 0,
        "step": 0,
        "percent": 33.3,
        "eta": 126.0,
        "loss": 0.123457,
        "learningRate": 1.23457e-05,
        "samplesPerSecond": 98765.4,
        "metrics": {"validation_loss": 0.666667},
        "isBest": False,
        "latestCheckpoint": {"uri": "s3://runs/a", "step": 7, "value": 0.333333},
        "updatedTime": "2026-01-01T12:00:05Z",
    }


def test_what_is_not_known_is_left_out():
    found = as_json(TrainingStatus(stage="Training", epoch=3, percent=None), AT)
    assert found.keys() == {"stage", "epoch", "epochsCompleted", "step", "isBest", "updatedTime"}


def test_a_functions_own_metric_keeps_its_digits_whatever_its_name():
    metrics = {"eta": 0.123, "percent": 12.345678}
    found = as_json(TrainingStatus(eta=1.6, percent=12.34, metrics=metrics, evaluation=metrics), AT)
    assert (found["eta"], found["percent"]) == (2, 12.3)
    assert found["metrics"] == found["evaluation"] == {"eta": 0.123, "percent": 12.3457}


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_does_not_know_are_left_out(number: float):
    odd = {"loss": number, "eta": number, "percent": number, "metrics": {"a": number, "b": 1.0}}
    found = as_json(TrainingStatus().model_copy(update=odd), AT)
    assert found.keys() & odd.keys() == {"metrics"}
    assert found["metrics"] == {"b": 1.0}


def test_texts_and_metrics_are_bounded():
    failure = Failure(exception="E", message="m" * 9999, traceback="first" + "t" * 9999 + "last")
    metrics = {f"metric-{number}": 1.0 for number in range(9999)}
    found = as_json(TrainingStatus(message="s" * 9999, failure=failure, metrics=metrics), AT)
    assert (len(found["message"]), len(found["failure"]["message"])) == (MAX_TEXT_CHARACTERS, MAX_TEXT_CHARACTERS)
    assert len(found["failure"]["traceback"]) == MAX_TEXT_CHARACTERS
    assert found["failure"]["traceback"].endswith("last")
    assert found["failure"]["retryable"] is True
    assert len(found["metrics"]) == MAX_ENTRIES
    assert as_json(TrainingStatus(metrics={"m" * 9999: 0.5}), AT)["metrics"] == {"m" * MAX_KEY_CHARACTERS: 0.5}


@pytest.mark.parametrize(
    "text", ["\N{ROCKET}", "\x7f\x85\u2028\ufeff", "no", "1e3", "a: b\n\ttab", "half \ud83d", "\x00"]
)
def test_any_text_can_be_sent(text: str):
    found = as_json(TrainingStatus(message=text), AT)
    assert json.loads(json.dumps(found).encode())["message"] == text.replace("\ud83d", "?")


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (404, "gone"),
        (400, "refused"),
        (403, "refused"),
        (422, "refused"),
        (401, "away"),
        (409, "away"),
        (429, "away"),
        (500, "away"),
        (503, "away"),
    ],
)
def test_what_a_refusal_means(status: int, answer: WriteResult):
    assert result_of(RequestRefused(status, "no")) == answer


@pytest.mark.parametrize(
    ("answer", "times", "closing", "pause"),
    [
        ("written", 1, False, 2),
        ("written", 1, True, 0),
        ("gone", 1, False, None),
        ("gone", 1, True, None),
        ("away", 1, False, 4),
        ("away", 3, False, 16),
        ("away", 99, False, 30),
        ("away", 1, True, 2),
        ("away", 99, True, 2),
        ("refused", 1, False, 4),
        ("refused", 5, False, 30),
        ("refused", 1, True, 2),
        ("refused", 99, True, 2),
    ],
)
def test_how_soon_the_next_snapshot_is_written(answer: WriteResult, times: int, closing: bool, pause: float | None):
    assert pause_after(answer, times, closing) == pause


@pytest.mark.parametrize(
    ("answer", "retries"),
    [
        (b'{"spec": {"retries": 3}}', 3),
        (b'{"spec": {"retries": 0}}', 0),
        (b'{"spec": {}}', 1),
        (b"<html>", 1),
        (b"[]", 1),
        (b'{"spec": {"retries": null}}', 1),
    ],
)
def test_an_answer_tells_the_retries_of_now(answer: bytes, retries: int):
    assert retries_in(answer, 1) == retries
