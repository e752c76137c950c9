"""Stories in which what the operator counts on changes: its settings, permissions, objects and pods."""

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

HELD = {"finalizers": ["example.com/audit"]}
OLD_POOL = {"gpus": 1, "nodePool": "a100"}
OWN_STORAGE = {"storage": {"uri": "s3://shared/NAMESPACE"}}
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

CHANGES = {
    # The settings, which restart the operator where it is not away, change before anything else
    "its-pool-is-removed": story(
        step(created(workers=OLD_POOL), then=CREATED, says="Created"),
        TRAINING,
        step(new_settings, then=TRAINS | {"accepted": "Accepted"}),
        step(user(suspend=True, retries=1), then=IS_SUSPENDED, says="Suspended"),
        step(FAILED, then=has_failed("AppFailed"), says="Failed", answers=True),
        left={"suspend": True, "backoffLimit": 1},
    ),
    "other-workers-after-its-pool-is-removed": story(
        step(created(workers=OLD_POOL), then=CREATED, says="Created"),
        TRAINING,
        step(new_settings, then=TRAINS | {"accepted": "Accepted"}),
        step(user(workers={"count": 2}), then=TRAINS | {"accepted": "UnknownNodePool"}, says="UnknownNodePool"),
        step(user(suspend=True), then=IS_SUSPENDED | {"accepted": "UnknownNodePool"}, says="Suspended"),
        step(user(workers={"nodePool": "other"}), then=IS_SUSPENDED | {"accepted": "Accepted"}),
        step(FAILED, then=has_failed("AppFailed"), says="Failed", answers=True),
        left={"suspend": True},
    ),
    "its-pool-is-removed-after-the-end": story(
        step(created(workers=OLD_POOL), then=CREATED, says="Created"),
        SUCCESS,
        step(new_settings, then=HAS_SUCCEEDED),
        step(user(ttlAfterFinished="1s"), then=GONE),
        gone=True,
    ),
    "its-pool-is-added": story(
        step(
            created(workers={"gpus": 1, "nodePool": "other"}), then=pending("UnknownNodePool"), says="UnknownNodePool"
        ),
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
    "kuberay-does-not-ask-the-next-head": story(
        AT_FIRST,
        step(pod("head", 1, **READY), pod("worker", 1, **READY), RUNNING, then=TRAINS, says="Started"),
        step(lost("head", 1), pod("head", 2), then=retries("HeadLost", attempt=1), says="Retrying Interrupted"),
        step(pod("head", 2, **STARTED), then=retries("HeadLost", attempt=1)),
        step(trainer(updatedTime="2026-01-01T00:00:10Z"), then=TRAINS, says="Started"),
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
        step(refused("rayjobs"), user(retries=1), then=TRAINS | {"accepted": "RayJobRefused"}, says="RayJobRefused"),
        step(allowed("rayjobs"), look_again, then=TRAINS | {"accepted": "Accepted"}),
        SUCCESS,
        left={"backoffLimit": 1},
    ),
}
