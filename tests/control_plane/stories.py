"""The table of stories that test_stories plays."""

from story import (
    allowed,
    changed,
    created,
    deleted,
    kuberay,
    look_again,
    lost,
    new_settings,
    pod,
    refused,
    step,
    story,
    trainer,
    user,
)

END = "2026-01-02T03:04:05Z"
QUEUE = {"labels": {"kueue.x-k8s.io/queue-name": "queue"}}
HELD = {"finalizers": ["example.com/audit"]}
OLD_POOL = {"gpus": 1, "nodePool": "a100"}

# What KubeRay reports
STARTING = kuberay(jobDeploymentStatus="Initializing", jobStatus="", reason="", rayClusterName="first")
RUNNING = kuberay(jobDeploymentStatus="Running", jobStatus="RUNNING", reason="", rayClusterName="first")
RUNNING_AGAIN = kuberay(jobDeploymentStatus="Running", jobStatus="RUNNING", reason="", rayClusterName="second")
RETRYING = kuberay(jobDeploymentStatus="Retrying", jobStatus="FAILED", reason="AppFailed", failed=1)
NEXT_ATTEMPT = kuberay(jobDeploymentStatus="Initializing", jobStatus="", reason="", rayClusterName="second")
SUSPENDED = kuberay(jobDeploymentStatus="Suspended", jobStatus="", rayClusterName="")
COMPLETE = kuberay(jobDeploymentStatus="Complete", jobStatus="SUCCEEDED", endTime=END)
FAILED = kuberay(jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed", failed=1, endTime=END)
TOO_LATE = {"reason": "PreRunningDeadlineExceeded", "jobStatus": ""}

# What pods say
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
STARTED = {
    "phase": "Running",
    "containerStatuses": [
        {
            "name": "ray-head",
            "image": "none",
            "imageID": "",
            "ready": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        }
    ],
}

# What the status says
CREATED = {"phase": "Pending", "reason": "Created"}
TRAINS = {"phase": "Running", "reason": "Training"}
HAS_SUCCEEDED = {"phase": "Succeeded", "reason": "Succeeded"}
IS_SUSPENDED = {"phase": "Suspended", "reason": "Suspended"}
GONE = {"phase": None}
OWN_STORAGE = {"storage": {"uri": "s3://shared/NAMESPACE"}}


def pending(reason: str) -> dict[str, str]:
    return {"phase": "Pending", "reason": reason}


def retries(reason: str, attempt: int = 2) -> dict[str, str | int]:
    return {"phase": "Retrying", "reason": reason, "attempt": attempt}


def has_failed(reason: str, attempt: int = 1) -> dict[str, str | int]:
    return {"phase": "Failed", "reason": reason, "attempt": attempt}


AT_FIRST = step(created(), then=CREATED, says="Created")
TRAINING = step(RUNNING, then=TRAINS, says="Started")
SUCCESS = step(COMPLETE, then=HAS_SUCCEEDED, says="Succeeded")

STORIES = {
    # The settings, which restart the operator where it is not away, change before anything else
    "its-pool-is-removed": story(
        step(created(workers=OLD_POOL), then=CREATED, says="Created"),
        TRAINING,
        step(new_settings, then=TRAINS | {"accepted": "Accepted"}),
        step(user(suspend=True, retries=1), then=IS_SUSPENDED, says="Suspended"),
        step(FAILED, then=has_failed("AppFailed"), says="Failed", answers=True),
        left={"suspend": True, "backoffLimit": 1},
    ),
    "its-pool-is-removed-after-the-end": story(
        step(created(workers=OLD_POOL), then=CREATED, says="Created"),
        SUCCESS,
        step(new_settings, then=HAS_SUCCEEDED),
        step(user(ttlAfterFinished="1s"), then=GONE),
        gone=True,
    ),
    "its-pool-is-added": story(
        step(created(workers={"gpus": 1, "nodePool": "other"}), then=pending("UnknownNodePool")),
        step(user(retries=1), then=pending("UnknownNodePool")),
        step(new_settings, then=CREATED, says="Created"),
        step(RUNNING, then=TRAINS, says="Started", answers=True),
        SUCCESS,
        left={"backoffLimit": 1},
    ),
    "another-default-storage": story(
        step(created(storage=None), then=CREATED, says="Created"),
        TRAINING,
        step(new_settings, then=TRAINS | OWN_STORAGE),
        step(deleted("rayjobs"), then=CREATED | OWN_STORAGE, says="RayJobRecreated"),
        step(COMPLETE, then=HAS_SUCCEEDED | OWN_STORAGE, says="Succeeded", answers=True),
        ray_jobs=2,
    ),
    "another-default-storage-before-its-first-status": story(
        step(refused("trainjobs/status"), created(storage=None), then={"phase": None}, says="Created"),
        step(RUNNING, then={"phase": None}, says="Started", answers=True),
        step(new_settings, then={"phase": None}),
        step(allowed("trainjobs/status"), look_again, then=TRAINS | OWN_STORAGE),
        SUCCESS,
    ),
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
        step(trainer(failure={"rank": 1, "exception": "ValueError", "message": "no such class"}), then=TRAINS),
        step(
            FAILED,
            then=has_failed("TrainingFailed") | {"message": "worker 1 failed: ValueError: no such class"},
            says="Failed",
        ),
    ),
    "failure-then-success": story(
        step(created(retries=1), then=CREATED, says="Created"),
        TRAINING,
        step(RETRYING, then=retries("AppFailed"), says="Retrying"),
        step(NEXT_ATTEMPT, then=retries("PodsStarting")),
        step(RUNNING_AGAIN, then=TRAINS | {"attempt": 2}, says="Started"),
        SUCCESS,
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
    "its-rayjob-is-deleted": story(
        AT_FIRST,
        TRAINING,
        step(deleted("rayjobs"), then=CREATED, says="RayJobRecreated"),
        step(RUNNING_AGAIN, then=TRAINS | {"attempt": 1}, says="Started", answers=True),
        SUCCESS,
        ray_jobs=2,
    ),
    "its-rayjob-is-deleted-and-held": story(
        step(created(), then=CREATED, says="Created"),
        step(changed("rayjobs", metadata=HELD), STARTING, then=pending("PodsStarting")),
        step(deleted("rayjobs"), then=pending("RayJobDeleting")),
        step(changed("rayjobs", metadata={"finalizers": []}), then=CREATED, says="RayJobRecreated"),
        step(RUNNING, then=TRAINS, says="Started", answers=True),
        SUCCESS,
        ray_jobs=2,
    ),
    "deleted": story(AT_FIRST, TRAINING, step(deleted("trainjobs"), then=GONE), gone=True),
    "deleted-and-held": story(
        step(created(HELD), then=CREATED, says="Created"),
        TRAINING,
        step(deleted("trainjobs"), then=TRAINS | {"accepted": "Deleting"}),
        step(deleted("rayjobs"), then=pending("Deleting")),
        step(changed("trainjobs", metadata={"finalizers": []}), then=GONE),
        gone=True,
    ),
    "deleted-and-created-again": story(
        AT_FIRST,
        TRAINING,
        step(deleted("trainjobs"), created(retries=3), then=CREATED | {"attempt": 1}, says="Created"),
        step(RUNNING, then=TRAINS, says="Started", answers=True),
        SUCCESS,
        ray_jobs=2,
        left={"backoffLimit": 3},
    ),
    "its-head-is-lost": story(
        AT_FIRST,
        step(pod("head", 1, **READY), pod("worker", 1, **READY), RUNNING, then=TRAINS, says="Started"),
        step(lost("head", 1), pod("head", 2), then=retries("HeadLost", attempt=1), says="Retrying Interrupted"),
        step(
            pod("head", 2, **STARTED),
            kuberay(rayJobInfo={"startTime": "2026-01-01T00:00:10Z"}),
            then=TRAINS,
            says="Started",
        ),
        SUCCESS,
        unseen="interruptions",
    ),
    "a-worker-is-lost": story(
        AT_FIRST,
        step(
            pod("head", 1, **READY),
            pod("worker", 1, **READY),
            RUNNING,
            then=TRAINS | {"workers": {"desired": 1, "ready": 1}},
            says="Started",
        ),
        step(
            lost("worker", 1),
            pod("worker", 2),
            then=TRAINS | {"workers": {"desired": 1, "ready": 0}},
            says="Interrupted",
        ),
        step(pod("worker", 2, **READY), then=TRAINS | {"workers": {"desired": 1, "ready": 1}}),
        SUCCESS,
        unseen="interruptions",
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
    "its-status-cannot-be-written": story(
        AT_FIRST,
        step(refused("trainjobs/status"), RUNNING, then=CREATED, says="Started"),
        step(user(retries=1), then=CREATED),
        step(RETRYING, then=CREATED, says="Retrying", answers=True),
        step(COMPLETE, allowed("trainjobs/status"), look_again, then=HAS_SUCCEEDED | {"attempt": 2}, says="Succeeded"),
        left={"backoffLimit": 1},
    ),
    "its-rayjob-cannot-be-written": story(
        AT_FIRST,
        TRAINING,
        step(refused("rayjobs"), user(retries=1), then=TRAINS | {"accepted": "RayJobRefused"}),
        step(allowed("rayjobs"), look_again, then=TRAINS | {"accepted": "Accepted"}),
        SUCCESS,
        left={"backoffLimit": 1},
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
