"""`trainjob describe` shows a status, and `trainjob events` a history."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from trainjob.api.status_reasons import explanation, explanations
from trainjob.cli.describe import description
from trainjob.cli.job_table import age
from trainjob.cluster.advice import causes
from trainjob.cluster.job import ClusterJob, Event
from trainjob.cluster.timeline import timeline

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
WIDTH = 80


def job(**status: Any) -> ClusterJob:
    metadata = {
        "name": "tags",
        "namespace": "team",
        "uid": "12345678-0000",
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-02T09:00:00Z",
    }
    return ClusterJob({"metadata": metadata, "spec": {"retries": 2}, "status": status})


def event(minutes: int, reason: str, message: str = "", count: int = 1) -> Event:
    return Event(NOW - timedelta(minutes=minutes), reason, message, count=count)


def described(subject: ClusterJob, *events: Event) -> list[str]:
    lines = description(subject, events, WIDTH, NOW, " -n team")
    assert [line for line in lines if len(line) > WIDTH] == []
    return lines


def test_a_job_that_nobody_has_seen():
    lines = described(job())
    assert lines[:4] == [
        "TrainJob    tags in team",
        "Phase       none yet: the operator has not seen the job; `trainjob doctor` shows",
        "            whether it runs",
        "Age         3h",
    ]
    assert lines[-2:] == ["Next", "  trainjob wait tags -n team"]


def test_a_job_of_another_controller():
    found = job()
    found.document["spec"]["managedBy"] = "kueue.x-k8s.io/multikueue"
    lines = described(found)
    assert lines[1].startswith("Phase       none yet: the operator leaves the job to kueue.x-k8s.io/multikueue")


def test_a_job_that_waits_says_why_and_what_to_do():
    waiting = [{"reason": "ImagePullBackOff", "pods": 3, "message": "manifest for x:1 not found " * 5}]
    lines = described(job(phase="Pending", reason="ImagePullBackOff", message="3 pods", attempt=1, waiting=waiting))
    start = lines.index("Why: ImagePullBackOff")
    assert lines[start + 1].startswith("  3 pods: manifest for x:1 not found")
    assert "  a container's image cannot be pulled" in lines
    assert "  What to do: fix the image's name or spec.pods.imagePullSecrets" in lines
    assert lines.count("Why: ImagePullBackOff") == 1


@pytest.mark.parametrize(("phase", "reason"), [("Failed", "Cancelled"), ("Suspended", "Suspended")])
def test_the_checkpoint_that_is_saved_as_the_pods_end_may_be_later_than_the_reported_one(phase: str, reason: str):
    reported = {"stage": "Training", "latestCheckpoint": {"uri": "s3://runs/tags/checkpoints/epoch-0001", "step": 40}}
    assert "Latest      step 40: s3://runs/tags/checkpoints/epoch-0001" in described(job(training=reported))
    ended = described(job(phase=phase, reason=reason, training=reported))
    assert "Latest      step 40 or later, in s3://runs/tags/checkpoints" in ended


def test_a_reason_that_this_version_does_not_know_is_told_in_the_clusters_words():
    [cause] = causes(job(phase="Pending", reason="Tired", message="the node sleeps").status)
    assert cause == ("Tired", "", "the node sleeps", "")
    assert "Why: Tired" in described(job(phase="Pending", reason="Tired", message="the node sleeps"))


@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
def test_a_job_that_trains_or_has_succeeded_needs_no_reason(phase: str):
    assert causes(job(phase=phase, reason="Training", message="pod a was lost").status) == []


def test_a_retry_tells_of_the_attempts_and_the_losses():
    lost = {"count": 2, "lastReason": "Evicted", "lastPod": "tags-w-1", "lastTime": "2026-01-02T11:50:00Z"}
    status = {"phase": "Retrying", "reason": "AppFailed", "attempt": 2, "message": "exit code 1", "interruptions": lost}
    lines = described(job(**status), event(60, "Created"))
    assert "Phase       Retrying (AppFailed), attempt 2 of 3" in lines
    assert "Interrupted 2 times; last 2026-01-02 11:50:00Z: Evicted" in lines
    assert "  2026-01-02 11:50:00Z  Interrupted  pod tags-w-1: Evicted (x2)" in lines


def test_a_failure_is_shown_with_its_traceback():
    failure = {"rank": 1, "exception": "ValueError", "message": "no such column", "traceback": 'File "a.py"\n  x()\n'}
    ended = {"phase": "Failed", "reason": "TrainingFailed", "completionTime": "2026-01-02T11:00:00Z"}
    lines = described(job(**ended, message="worker 1 raised", training={"stage": "Training", "failure": failure}))
    assert "Failure     worker 1: ValueError: no such column" in lines
    start = lines.index("Traceback")
    assert lines[start + 1 : start + 3] == ['  File "a.py"', "    x()"]
    assert "  2026-01-02 11:00:00Z  Failed     TrainingFailed: worker 1 raised" in lines


def test_what_the_reason_says_is_not_said_twice():
    failure = {"rank": 1, "exception": "ValueError", "message": "no such column"}
    message = "worker 1 failed: ValueError: no such column"
    training = {"stage": "Training", "failure": failure}
    failed = described(job(phase="Failed", reason="TrainingFailed", message=message, training=training))
    assert [line.strip() for line in failed if "no such column" in line] == [message]
    cancelled = described(job(phase="Failed", reason="Cancelled", message="spec.cancel is true"))
    assert len([line for line in cancelled if "spec.cancel is true" in line]) == 1


def test_a_job_that_trains_shows_its_message():
    failure = {"rank": 1, "exception": "ValueError", "message": "no such column"}
    message = "worker 1 failed: ValueError: no such column"
    ending = described(
        job(phase="Running", reason="Finishing", message=message, training={"stage": "Training", "failure": failure})
    )
    assert f"Message     {message}" in ending


def test_an_estimate_beyond_all_calendars_is_shown():
    training = {"stage": "Training", "step": 1, "steps": 10, "epochs": 1, "eta": 1e15}
    assert any("11,574,074,074 days, 1:46:40 to go" in line for line in described(job(training=training)))


def test_a_success_shows_scores_and_how_to_use_the_model():
    training = {
        "stage": "Finished",
        "percent": 100.0,
        "bestCheckpoint": {"uri": "s3://r/c", "step": 1200, "metric": "validation_f1", "value": 0.5},
        "evaluation": {"test_f1": 0.25},
    }
    times = {"startTime": "2026-01-02T10:00:00Z", "completionTime": "2026-01-02T11:30:00Z"}
    lines = described(job(phase="Succeeded", reason="Succeeded", training=training, **times))
    assert "Age         3h; took 1 h 30 min" in lines
    assert "Metrics     test_f1 0.2500" in lines
    assert "Best        step 1,200, validation_f1 0.5000: s3://r/c" in lines
    assert lines[-2:] == ["  trainjob predict tags -n team DATA", "  trainjob pull tags -n team"]
    of_a_function = described(job(phase="Succeeded", reason="Succeeded", training={"stage": "Finished"}, **times))
    assert of_a_function[-1] == "  trainjob pull tags -n team --what all"


def test_a_status_that_cannot_be_read_says_so():
    assert any(line.startswith("Unreadable  status cannot be read: phase") for line in described(job(phase="Odd")))


def test_the_timeline_fills_what_events_have_forgotten():
    ended = {"phase": "Succeeded", "reason": "Succeeded", "completionTime": "2026-01-02T11:30:00Z"}
    assert [each.reason for each in timeline(job(**ended), [])] == ["Submitted", "Succeeded"]
    told = timeline(job(**ended), [event(29, "Succeeded"), event(90, "Started")])
    assert [each.reason for each in told] == ["Submitted", "Started", "Succeeded"]
    refusal = {
        "type": "Accepted",
        "status": "False",
        "reason": "NoStorage",
        "message": "nowhere",
        "lastTransitionTime": "2026-01-02T09:01:00Z",
    }
    assert [each.reason for each in timeline(job(conditions=[refusal]), [])] == ["Submitted", "NoStorage"]


def test_a_long_name_or_word_is_kept_whole():
    name = "x" * 200
    lines = description(job(phase="Pending", reason="NoStorage", message=name), [event(1, "Waiting", name)], WIDTH, NOW)
    assert any(name in line for line in lines)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (172_800, "2d"),
        (1e15, "11574074074d"),
    ],
)
def test_an_age_has_one_unit(seconds: float, shown: str):
    assert age(seconds) == shown


def test_explanations_are_without_markdown():
    for row in explanations():
        for reason in row.reasons.split(", "):
            found = explanation(reason)
            assert found is not None
            assert not set("`[]") & set(found.meaning + found.remedy), reason
    assert explanation("Nothing") is None


def test_each_reason_has_an_explanation_of_its_own():
    [queued] = causes(job(phase="Suspended", reason="Queued", message="too few GPUs").status)
    assert "spec.suspend" not in queued.meaning + queued.remedy
    assert queued.remedy.startswith("wait for the queue, or check that Kueue is installed")
    [uncreated] = causes(job(phase="Pending", reason="FailedToCreateRayCluster", message="no").status)
    assert uncreated.remedy.startswith("fix what message names; KubeRay and the Job controller try again")


def test_metrics_that_are_left_out_are_counted():
    training = {"stage": "Finished", "evaluation": {f"test_{number}": 0.5 for number in range(15)}}
    lines = " ".join(described(job(phase="Succeeded", reason="Succeeded", training=training)))
    assert "test_11 0.5000" in lines
    assert "test_12" not in lines
    assert "and 3 more" in lines


def test_a_metric_and_its_value_are_on_one_line():
    training = {"stage": "Finished", "evaluation": {f"validation_{'x' * n}": 0.5 for n in range(1, 13)}}
    lines = described(job(phase="Succeeded", reason="Succeeded", training=training))
    shown = [line for line in lines if "validation_" in line]
    assert len(shown) > 3
    assert all(line.rstrip(",").endswith("0.5000") for line in shown)


def test_the_next_commands_find_the_job():
    failed = described(job(phase="Failed", reason="TrainingFailed"))
    assert "  trainjob submit FILE --name-suffix -n team   # try again" in failed
    assert "  trainjob logs tags -n team   # the driver's log" in failed
