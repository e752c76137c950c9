"""Whole verdicts on jobs that have ended, with their messages and times."""

from datetime import UTC, datetime
from importlib.metadata import version

import pytest
from operator_objects import ray_job
from verdict_cases import ENDED, KILLED, OTHER_HEAD, OUT_OF_MEMORY, Case, failed, head, status, submitter

from trainjob.api.training_status import TrainingStatus
from trainjob_operator.verdict import Verdict

AT = datetime(2026, 1, 1, 11, 59, 58, tzinfo=UTC)
UNSAID = "the RayJob failed without a message from the driver or KubeRay"
NO_SUBMITTER = (
    "the submitter pod failed: python: No module named trainjob.submitter; "
    f"the image mine:1 has no trainjob, or an older one than the operator's, {version('trainjob')}"
)
OUT_OF_MEMORY_NOW = head(state={"terminated": {"reason": "OOMKilled"}})
OTHERS_OUT_OF_MEMORY = head(labels=OTHER_HEAD, state={"terminated": {"reason": "OOMKilled"}})

ENDS = {
    "well": Case(
        ray_job("Complete", "SUCCEEDED", message="done", endTime=ENDED), Verdict("Succeeded", "Succeeded", "done", AT)
    ),
    "well, without a word": Case(ray_job("Complete", "SUCCEEDED"), Verdict("Succeeded", "Succeeded")),
    "stopped": Case(
        ray_job("Complete", "STOPPED", endTime=ENDED),
        Verdict("Failed", "Stopped", "the Ray job was stopped from outside", AT),
    ),
    "stopped after it had failed for good": Case(
        ray_job("Complete", "STOPPED"),
        Verdict("Failed", "TrainingFailed", "worker 1 failed: ValueError: no"),
        status(training=failed(1, "ValueError", "no", retryable=False)),
    ),
    "failed, as KubeRay tells": Case(
        ray_job("Failed", "FAILED", reason="SubmissionFailed", message="no dashboard", endTime=ENDED),
        Verdict("Failed", "SubmissionFailed", "no dashboard", AT),
    ),
    "an image without the submitter": Case(
        ray_job("Failed", "FAILED", reason="SubmissionFailed", message="BackoffLimitExceeded"),
        Verdict("Failed", "SubmissionFailed", f"{NO_SUBMITTER}; BackoffLimitExceeded"),
        pods=(submitter(1, "python: No module named trainjob.submitter\n"),),
    ),
    "a head that does not take the job": Case(
        ray_job("Failed", "FAILED", reason="SubmissionFailed"),
        Verdict("Failed", "SubmissionFailed", "the submitter pod failed: the head has not accepted the job for 600 s"),
        pods=(submitter(1, "waits for the head: 503\nthe head has not accepted the job for 600 s"),),
    ),
    "a submitter without a word": Case(
        ray_job("Failed", "FAILED", reason="SubmissionFailed", message="no dashboard"),
        Verdict("Failed", "SubmissionFailed", "the submitter pod failed: exit code 137; no dashboard"),
        pods=(submitter(0, "job x: SUCCEEDED"), submitter(137, "")),
    ),
    "completed as failed": Case(
        ray_job("Complete", "FAILED", reason="AppFailed", message="exit"), Verdict("Failed", "AppFailed", "exit")
    ),
    "completed as failed, without a reason": Case(ray_job("Complete", "FAILED"), Verdict("Failed", "Failed", UNSAID)),
    "of the driver": Case(
        ray_job("Failed", "FAILED", reason="AppFailed"),
        Verdict("Failed", "TrainingFailed", "the driver failed: ValueError: no"),
        status(training=failed(None, "ValueError", "no")),
    ),
    "without a message": Case(
        ray_job("Failed", "FAILED", reason="AppFailed"),
        Verdict("Failed", "TrainingFailed", "worker 0 failed: AssertionError"),
        status(training=failed(0, "AssertionError", "")),
    ),
    "an earlier failure is not the deadline's": Case(
        ray_job("Failed", "FAILED", reason="DeadlineExceeded", message="too long"),
        Verdict("Failed", "DeadlineExceeded", "too long"),
        status(training=failed(0, "ValueError", "no")),
    ),
    "but one for good is": Case(
        ray_job("Failed", "FAILED", reason="DeadlineExceeded"),
        Verdict("Failed", "TrainingFailed", "worker 0 failed: ValueError: no"),
        status(training=failed(0, "ValueError", "no", retryable=False)),
    ),
    **{
        f"out of memory, {reason}": Case(
            ray_job("Failed", "FAILED", reason=reason, message="gone"),
            Verdict("Failed", reason, f"{KILLED}gone"),
            pods=(OUT_OF_MEMORY,),
        )
        for reason in ("AppFailed", "Failed", "SubmissionFailed")
    },
    "out of memory now": Case(
        ray_job("Failed", "FAILED"), Verdict("Failed", "Failed", KILLED), pods=(OUT_OF_MEMORY_NOW,)
    ),
    "another head's memory": Case(
        ray_job("Failed", "FAILED"), Verdict("Failed", "Failed", UNSAID), pods=(OTHERS_OUT_OF_MEMORY,)
    ),
    "memory is not a deadline": Case(
        ray_job("Failed", reason="DeadlineExceeded"), Verdict("Failed", "DeadlineExceeded"), pods=(OUT_OF_MEMORY,)
    ),
    "killed": Case(
        ray_job("Failed", "FAILED", reason="AppFailed", message="exit code 137 of it"),
        Verdict("Failed", "AppFailed", f"{KILLED}exit code 137 of it"),
    ),
    "killed by a signal": Case(
        ray_job("Failed", "FAILED", message="exit code -9"), Verdict("Failed", "Failed", f"{KILLED}exit code -9")
    ),
    "not killed": Case(
        ray_job("Failed", "FAILED", message="exit code 1370"), Verdict("Failed", "Failed", "exit code 1370")
    ),
    "the trainer's word comes first": Case(
        ray_job("Failed", "FAILED", message="gone", endTime=ENDED),
        Verdict("Succeeded", "Succeeded", "the model is trained", AT),
        status(training=TrainingStatus(stage="Finished")),
    ),
    "also without a RayJob": Case(
        None,
        Verdict("Succeeded", "Succeeded", "the model is trained"),
        status(training=TrainingStatus(stage="Finished")),
    ),
}


@pytest.mark.parametrize("case", ENDS.values(), ids=list(ENDS))
def test_the_whole_verdict(case: Case):
    case.check()
