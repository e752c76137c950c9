"""Stories of the usual lives of TrainJobs: how they start, wait, are suspended and end."""

from story import changed, created, deleted, kuberay, step, story, trainer, user
from story_steps import (
    AT_FIRST,
    COMPLETE,
    CREATED,
    FAILED,
    GONE,
    HAS_SUCCEEDED,
    IS_SUSPENDED,
    RETRYING,
    RUNNING,
    RUNNING_AGAIN,
    STARTING,
    SUCCESS,
    TRAINING,
    TRAINS,
    has_failed,
    pending,
    retries,
)

QUEUE = {"labels": {"kueue.x-k8s.io/queue-name": "queue"}}
NEXT_ATTEMPT = kuberay(jobDeploymentStatus="Initializing", jobStatus="", reason="", rayClusterName="second")
SUSPENDED = kuberay(jobDeploymentStatus="Suspended", jobStatus="", rayClusterName="")
NO_SUCH_CLASS = "worker 1 failed: ValueError: no such class"
HEAD_GIVEN_UP = kuberay(jobDeploymentStatus="Failed", reason="JobStatusCheckTimeoutExceeded", failed=1)
TOO_LATE = {"reason": "PreRunningDeadlineExceeded", "jobStatus": ""}

LIVES = {
    "success": story(AT_FIRST, step(STARTING, then=pending("PodsStarting")), TRAINING, SUCCESS),
    "stopped-by-somebody": story(
        AT_FIRST,
        step(kuberay(jobDeploymentStatus="Complete", jobStatus="STOPPED"), then=has_failed("Stopped"), says="Failed"),
        step(user(suspend=True), then=has_failed("Stopped")),
    ),
    "never-submitted": story(
        AT_FIRST,
        step(
            kuberay(jobDeploymentStatus="Failed", reason="SubmissionFailed"),
            then=has_failed("SubmissionFailed"),
            says="Failed",
        ),
        step(user(suspend=True), then=has_failed("SubmissionFailed")),
    ),
    "suspended-after-the-end": story(AT_FIRST, SUCCESS, step(user(suspend=True), then=HAS_SUCCEEDED)),
    "failure": story(
        AT_FIRST,
        TRAINING,
        step(
            trainer(failure={"rank": 1, "exception": "ValueError", "message": "no such class"}),
            then=TRAINS
            | {"message": f"{NO_SUCH_CLASS}; waiting for KubeRay to end the attempt, or for the next to report"},
        ),
        step(FAILED, then=has_failed("TrainingFailed") | {"message": NO_SUCH_CLASS}, says="Failed"),
    ),
    "failure-then-success": story(
        step(created(retries=1), then=CREATED, says="Created"),
        TRAINING,
        step(RETRYING, then=retries("AppFailed"), says="Retrying"),
        step(NEXT_ATTEMPT, then=retries("PodsStarting")),
        step(RUNNING_AGAIN, then=TRAINS | {"attempt": 2}, says="Started"),
        SUCCESS,
    ),
    "kuberay-gives-up-a-lost-head": story(
        step(created(retries=1), then=CREATED, says="Created"),
        TRAINING,
        step(HEAD_GIVEN_UP, then=CREATED | {"attempt": 2}, says="Retrying RayJobRecreated"),
        step(RUNNING_AGAIN, then=TRAINS | {"attempt": 2}, says="Started", answers=True),
        step(HEAD_GIVEN_UP, then=has_failed("JobStatusCheckTimeoutExceeded", attempt=2), says="Failed"),
        ray_jobs=2,
    ),
    "failure-for-good": story(
        step(created(retries=2), then=CREATED, says="Created"),
        TRAINING,
        step(trainer(failure={"exception": "UserError", "message": "no bucket", "retryable": False}), then=TRAINS),
        step(FAILED, then=has_failed("TrainingFailed"), says="Failed"),
        left={"backoffLimit": 0},
    ),
    "finished-and-kuberay-says-failed": story(
        AT_FIRST,
        TRAINING,
        step(trainer(stage="Finished"), then=HAS_SUCCEEDED, says="Succeeded"),
        step(FAILED, then=HAS_SUCCEEDED),
    ),
    "finished-and-its-rayjob-deleted": story(
        AT_FIRST,
        TRAINING,
        step(trainer(stage="Finished"), then=HAS_SUCCEEDED, says="Succeeded"),
        step(deleted("rayjobs"), then=HAS_SUCCEEDED),
        gone=True,
        unseen="rayClusterName",
    ),
    "start-deadline": story(
        step(created(retries=1, deadlines={"start": "1h"}), then=CREATED, says="Created"),
        step(
            kuberay(jobDeploymentStatus="Retrying", failed=1, **TOO_LATE),
            then=retries("PreRunningDeadlineExceeded"),
            says="Retrying",
        ),
        step(NEXT_ATTEMPT, then=retries("PodsStarting")),
        step(
            kuberay(jobDeploymentStatus="Failed", failed=2, **TOO_LATE),
            then=has_failed("PreRunningDeadlineExceeded", attempt=2),
            says="Failed",
        ),
        left={"backoffLimit": 1, "preRunningDeadlineSeconds": 3600},
    ),
    "total-deadline": story(
        AT_FIRST,
        TRAINING,
        step(user(deadlines={"total": "1s"}), then=has_failed("DeadlineExceeded"), says="Failed"),
        gone=True,
    ),
    "total-deadline-after-its-end": story(
        AT_FIRST, TRAINING, SUCCESS, step(user(deadlines={"total": "1s"}), then=HAS_SUCCEEDED)
    ),
    "total-deadline-while-it-finishes": story(
        AT_FIRST,
        TRAINING,
        step(kuberay(jobStatus="SUCCEEDED"), then={"phase": "Running", "reason": "Finishing"}),
        step(user(deadlines={"total": "1s"}), then={"phase": "Running", "reason": "Finishing"}),
        SUCCESS,
    ),
    "total-deadline-of-a-driver-that-hangs": story(
        AT_FIRST,
        TRAINING,
        step(trainer(stage="Finished"), then=HAS_SUCCEEDED, says="Succeeded"),
        step(user(deadlines={"total": "1s"}), then=HAS_SUCCEEDED),
        gone=True,
    ),
    "suspended-before-the-start": story(
        step(created(suspend=True), then=IS_SUSPENDED, says="Created Suspended"),
        step(SUSPENDED, then=IS_SUSPENDED),
        step(user(suspend=False), then=pending("Resuming")),
        step(RUNNING, then=TRAINS, says="Started", answers=True),
        SUCCESS,
        left={"suspend": False},
    ),
    "suspended-in-mid-run": story(
        AT_FIRST,
        TRAINING,
        step(user(suspend=True), then=IS_SUSPENDED, says="Suspended"),
        step(SUSPENDED, user(suspend=False), then=pending("Resuming"), answers=True),
        step(RUNNING_AGAIN, then=TRAINS | {"attempt": 1}, says="Started", answers=True),
        SUCCESS,
        left={"suspend": False},
    ),
    "cancelled-in-mid-run": story(
        AT_FIRST, TRAINING, step(user(cancel=True), then=has_failed("Cancelled"), says="Failed"), gone=True
    ),
    "suspended-by-a-queue": story(
        step(created(QUEUE), then=CREATED, says="Created"),
        step(
            changed("rayjobs", spec={"suspend": True}),
            SUSPENDED,
            then={"phase": "Suspended", "reason": "Queued"},
            says="Suspended",
        ),
        step(changed("rayjobs", spec={"suspend": False}), STARTING, then=pending("PodsStarting")),
        TRAINING,
        SUCCESS,
        left={"suspend": False},
    ),
    "more-retries": story(
        AT_FIRST,
        TRAINING,
        step(user(retries=2), then=TRAINS),
        step(RETRYING, then=retries("AppFailed"), says="Retrying", answers=True),
        step(RUNNING_AGAIN, then=TRAINS | {"attempt": 2}, says="Started"),
        SUCCESS,
        left={"backoffLimit": 2},
    ),
    "fewer-retries": story(
        step(created(retries=2), then=CREATED, says="Created"),
        step(RETRYING, then=retries("AppFailed"), says="Retrying"),
        step(user(retries=0), then=retries("AppFailed")),
        step(
            kuberay(jobDeploymentStatus="Failed", jobStatus="FAILED", failed=2),
            then=has_failed("AppFailed", attempt=2),
            says="Failed",
            answers=True,
        ),
        left={"backoffLimit": 0},
    ),
    "its-time-is-over": story(
        step(created(ttlAfterFinished="1s"), then=CREATED, says="Created"),
        TRAINING,
        step(COMPLETE, then=GONE, says="Succeeded"),
        gone=True,
    ),
    "the-time-of-its-rayjob-is-over": story(
        step(created(rayJobTTLAfterFinished="1s"), then=CREATED, says="Created"),
        TRAINING,
        SUCCESS,
        gone=True,
    ),
    "kuberay-refuses-its-rayjob": story(
        AT_FIRST,
        TRAINING,
        step(
            kuberay(jobDeploymentStatus="ValidationFailed", message="no"),
            then=has_failed("ValidationFailed"),
            says="Failed",
        ),
        gone=True,
    ),
}
