"""A short-lived pod like a job's own: can its image be pulled, and its storage be written and read?"""

import time
from collections.abc import Callable, Iterator
from typing import Any

from trainjob.api.cluster import STORAGE_PATH, KubernetesObject
from trainjob.api.status_reasons import explanation
from trainjob.api.storage import Storage
from trainjob.cluster.errors import NotPermitted
from trainjob.cluster.short_lived_pod import FINAL_REASONS, ShortLivedPod
from trainjob.doctor.findings import Finding, ok, unknown, wrong
from trainjob.doctor.installation import Subject
from trainjob_operator.diagnosis import diagnose
from trainjob_operator.pods import resources, serving_spec
from trainjob_operator.settings import Settings

_CONTAINER = "doctor"
_PAUSE_SECONDS = 1.0
_LATEST_SECONDS = 30
"""Seconds after the wait when the cluster itself ends the pod, if this process cannot."""
_IMAGE_REASONS = ("ErrImagePull", *FINAL_REASONS[1:])

STORAGE_FAILED = 3
"""Exit code of the program."""
WRITE_AND_READ = """
import os, signal, sys
from trainjob.errors import UserError
def fail(message):
    print(message, file=sys.stderr)
    sys.exit(3)
signal.signal(signal.SIGTERM, lambda *_: fail("the storage did not answer in time"))
uri, endpoint = sys.argv[1:]
if uri:
    from trainjob.storage import Folder
    folder, name, data = Folder(uri, endpoint or None), ".doctor-" + os.urandom(8).hex(), os.urandom(64)
    try:
        folder.write(name, data)
        try:
            found = folder.read(name)
        finally:
            folder.delete(name)
    except UserError as error:
        fail(error)
    if found != data:
        fail("what was read is not what was written")
"""


def probe_pod(subject: Subject, uri: str) -> KubernetesObject:
    """A pod as the operator would create it for the job; it writes to, reads from and deletes from `uri`."""
    settings = subject.installation.settings
    storage = subject.job.spec.storage
    image = subject.job.spec.pods.image or "unknown"
    spec = serving_spec(subject.job, settings or Settings(image=image), _CONTAINER, resources(0.1, "512Mi"), {})
    endpoint = (storage.endpoint if storage is not None else None) or ""
    spec["containers"][0]["command"] = ["python", "-c", WRITE_AND_READ, uri, endpoint]
    labels = {"app.kubernetes.io/managed-by": "trainjob-doctor"}
    metadata = {"generateName": "trainjob-doctor-", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec | {"restartPolicy": "Never"}}


def probe(subject: Subject, seconds: int, on_wait: Callable[[str], None]) -> Iterator[Finding]:
    """Runs the pod for up to `seconds`, and deletes it in any case. Calls `on_wait` with the reason while it waits."""
    settings, storage = subject.installation.settings, subject.job.spec.storage
    if settings is None and subject.job.spec.pods.image is None:
        reason = "not known, because the operator's settings cannot be read"
        yield unknown("image", reason, "name a TrainJob with spec.pods.image: trainjob doctor FILE")
        return
    if storage is None:
        yield unknown(
            "storage", "neither a TrainJob nor the operator's settings name one", "trainjob doctor --storage URI"
        )
    pod = probe_pod(subject, _path(storage))
    labels = {"labels": pod["metadata"]["labels"]}
    running = ShortLivedPod(subject.connection, subject.namespace, "trainjob-doctor")
    image = pod["spec"]["containers"][0]["image"]
    try:
        running.create({"metadata": labels, "spec": pod["spec"]}, labels, seconds + _LATEST_SECONDS)
        yield from outcome(image, storage, *_wait(running, seconds, on_wait))
    except NotPermitted as error:
        yield unknown("image", f"no pod can be started to try it: {error}")
    finally:
        running.delete()


def _path(storage: Storage | None) -> str:
    if storage is None:
        return ""
    return STORAGE_PATH if storage.persistent_volume_claim is not None else str(storage.uri)


def _wait(
    running: ShortLivedPod, seconds: int, on_wait: Callable[[str], None]
) -> tuple[KubernetesObject | None, tuple[str, str] | None]:
    """The pod when it has ended, cannot start or the time is over, and why it has not started."""
    end, reported = time.monotonic() + seconds, ""
    while True:
        pod = running.find()
        reason = _waiting(running, pod) if pod is not None else None
        is_final = reason is not None and reason[0] in FINAL_REASONS
        if is_final or _ended(pod) is not None or time.monotonic() >= end:
            return pod, reason
        if (now := _standing(pod, reason)) != reported:
            on_wait(now)
            reported = now
        time.sleep(_PAUSE_SECONDS)


def _standing(pod: KubernetesObject | None, reason: tuple[str, str] | None) -> str:
    if pod is None:
        return "the pod is being created"
    if reason is not None:
        return ": ".join(reason)
    is_running = pod.get("status", {}).get("phase") == "Running"
    return "the pod runs" if is_running else "the pod starts; the first pull of an image may take minutes"


def _waiting(running: ShortLivedPod, pod: KubernetesObject) -> tuple[str, str] | None:
    """Reason and message if the pod waits for something."""
    found = diagnose([pod], None, running.events(pod))
    return (found[0].reason, found[0].message) if found else None


def _ended(pod: KubernetesObject | None) -> dict[str, Any] | None:
    """The end state of the pod's container."""
    statuses = ((pod or {}).get("status") or {}).get("containerStatuses") or ()
    return next((each["state"]["terminated"] for each in statuses if "terminated" in each.get("state", {})), None)


def outcome(
    image: str, storage: Storage | None, pod: KubernetesObject | None, reason: tuple[str, str] | None
) -> Iterator[Finding]:
    where = ""
    if storage is not None:
        where = storage.uri or f"the PersistentVolumeClaim {storage.persistent_volume_claim}"
    ended = _ended(pod)
    if ended is None and (pod is None or pod.get("status", {}).get("phase") != "Running"):
        why, message = reason or ("Starting", "the pod had not started when the time was over")
        known = explanation(why)
        remedy = known.remedy if known is not None else "wait longer: --timeout 10m"
        yield wrong("image" if why in _IMAGE_REASONS else "pod", f"{image}: {why}: {message}", remedy)
        return
    remedy = "check the URI, spec.storage.endpoint and the keys in the Secret spec.storage.secretName"
    code = ended["exitCode"] if ended is not None else None
    lines = ((ended or {}).get("message") or (ended or {}).get("reason") or "").strip().splitlines()
    answer = lines[-1] if lines else "no answer when the time was over"
    if code not in (None, 0, STORAGE_FAILED):
        yield wrong(
            "image", f"{image} cannot run a job: {answer} (exit code {code})", "build the image with trainjob in it"
        )
        return
    yield ok("image", f"a pod runs with {image}")
    if where and code != 0:
        yield wrong("storage", answer if where in answer else f"{where}: {answer}", remedy)
    elif where:
        yield ok("storage", f"{where}: a pod has written, read and deleted a file")
