"""The folder of a run: only the same TrainJob continues it."""

import os
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

import yaml

from trainjob.api import Baselines, TrainJob
from trainjob.api.earlier import as_written_now
from trainjob.api.kubernetes_yaml import as_yaml_file
from trainjob.api.names import run_name
from trainjob.errors import UserError, listed, notify
from trainjob.redaction import redacted
from trainjob.runs.attempts import Attempts, read_attempts, write_attempts
from trainjob.runs.files import (
    ATTEMPTS,
    BASELINES,
    CHECKPOINTS,
    CODE,
    EVALUATION,
    FITTED,
    LOGS,
    METRICS,
    MODEL,
    MORE_METRICS,
    PREDICTIONS,
    REPORT,
    SOFT_LABELS,
    SPLIT,
    SUMMARY,
    TENSORBOARD,
    TRACKING,
    TRAINJOB,
    TRIALS,
    VARIANTS,
    VARIANTS_TABLE,
)
from trainjob.runs.refusals import not_a_run, refuse_damaged
from trainjob.storage import Folder

Found = TypeVar("Found")

MAY_CHANGE = (
    "spec.baselines",
    "spec.cancel",
    "spec.checkpoints.keep",
    "spec.deadlines",
    "spec.head",
    "spec.pods",
    "spec.retries",
    "spec.storage",
    "spec.suspend",
    "spec.tracking",
    "spec.tuning.parallel",
    "spec.ttlAfterFinished",
    "spec.rayJobTTLAfterFinished",
    "spec.workers",
)
"""Fields that may differ when a run resumes: they affect neither the model nor the rows."""
ON_BAD_ROWS = "spec.dataset.onBadRows"
"""A field that may also differ until something is trained: the rows are then read again."""
_RUN_FILES = {
    TRAINJOB,
    CODE,
    FITTED,
    CHECKPOINTS,
    MODEL,
    METRICS,
    MORE_METRICS,
    LOGS,
    TENSORBOARD,
    EVALUATION,
    PREDICTIONS,
    BASELINES,
    SUMMARY,
    REPORT,
    SOFT_LABELS,
    VARIANTS,
    VARIANTS_TABLE,
    TRIALS,
    TRACKING,
}
_RAY_FILES = re.compile(r"checkpoint_manager_snapshot\.json|checkpoint_\d.*|\.validate_storage_marker")
"""Files that Ray Train writes into the folder of a run with a training function."""
POLLS, POLL_SECONDS = 30, 2.0
"""Number and interval of checks before a file counts as removed. On a busy machine, a starting MinIO server took more
than ten seconds to list the files on its disk."""


def run_folder(job: TrainJob) -> Folder:
    storage = job.spec.storage
    if storage is not None and storage.uri is None:
        raise UserError(
            "spec.storage.persistentVolumeClaim exists only in a cluster: here, add --set 'spec.storage={uri: runs}'"
        )
    root = Folder(os.path.abspath("runs")) if storage is None else Folder(cast("str", storage.uri), storage.endpoint)
    return root / run_name(job.metadata.name, job.metadata.uid)


def begin_attempt(run: Folder, job: TrainJob, started: float | None = None) -> Attempts:
    """Counts a new attempt of a command that started at `started`, in seconds since 1970, or now.

    Raises UserError if the folder holds the run of another TrainJob.
    """
    check_same_spec(run, job)
    attempts = Attempts(started=datetime.now(UTC) if started is None else datetime.fromtimestamp(started, UTC), count=1)
    if earlier := read_attempts(run):
        attempts = earlier.model_copy(update={"count": earlier.count + 1, "failure": ""})
    write_attempts(run, attempts)  # first: this file marks the folder as a run's
    if not run.exists(TRAINJOB):
        write_job(run, job)
    elif reads_data(run, job):  # the user may have corrected the spec or the data
        run.delete(FITTED)
        write_job(run, job)
    return attempts


def write_job(run: Folder, job: TrainJob) -> None:
    """Writes the run's TrainJob."""
    run.write(TRAINJOB, as_yaml_file(to_dict(job)).encode())


def read_job(run: Folder) -> TrainJob:
    """The run's TrainJob. Raises UserError if the folder is not a run's or the file is damaged."""
    return parse_job(run, read_job_yaml(run))


def read_job_yaml(run: Folder) -> str:
    """The content of the run's `trainjob.yaml`. Raises UserError if the folder is not a run's."""
    if not run.exists(TRAINJOB):
        raise not_a_run(run, TRAINJOB)
    with refuse_damaged(run, TRAINJOB):
        return run.read(TRAINJOB).decode()


def parse_job(run: Folder, job_yaml: str) -> TrainJob:
    """Parses `read_job_yaml(run)`. Raises UserError if it is damaged."""
    with refuse_damaged(run, TRAINJOB):
        return TrainJob.model_validate(as_written_now(yaml.safe_load(job_yaml)))


def has_results(run: Folder) -> bool:
    """Whether the run has results that depend on its spec: fitted data, or files that training wrote."""
    return _has_trained(run) or run.exists(f"{FITTED}/{SPLIT}")


def reads_data(run: Folder, job: TrainJob) -> bool:
    """Whether the next attempt reads the data again, instead of using the fitted data in the run's folder: nothing has
    been trained yet, and either nothing is fitted or `dataset.onBadRows` has changed."""
    if not run.exists(TRAINJOB) or not has_results(run):
        return True
    return not _has_trained(run) and ON_BAD_ROWS in changed_fields(read_job(run), job)


def _has_trained(run: Folder) -> bool:
    """Whether the run has files that training wrote."""
    names = set(run.list()) - {TRAINJOB, ATTEMPTS, CODE, FITTED, LOGS, TENSORBOARD, TRACKING}
    return any(name in _RUN_FILES or _RAY_FILES.fullmatch(name) for name in names)


def check_same_spec(run: Folder, job: TrainJob) -> None:
    """Raises UserError if the folder holds results of another TrainJob.

    A field that is missing in the folder's TrainJob, because an earlier version wrote it, has its default."""
    if not run.exists(TRAINJOB) or not has_results(run):
        return
    begun = read_job(run)
    old, new = flatten(to_dict(begun)), flatten(to_dict(job))
    may_change = MAY_CHANGE if _has_trained(run) else (*MAY_CHANGE, ON_BAD_ROWS)
    changed = [
        f"  {path}: {old.get(path, 'unset')} → {new.get(path, 'unset')}"
        for path in changed_fields(begun, job)
        if not path.startswith(may_change)
    ]
    if changed:
        raise UserError(
            f"{run.uri} holds a run of this name that was started with another spec:\n"
            + "\n".join(changed)
            + "\nRestore the old values to continue it, start over with --fresh, or choose another metadata.name."
        )


def changed_fields(old: TrainJob, new: TrainJob) -> list[str]:
    """The paths of the fields of `spec` that differ."""
    before, after = flatten(to_dict(old)), flatten(to_dict(new))
    paths = sorted(path for path in before.keys() | after.keys() if path.startswith("spec."))
    return [path for path in paths if before.get(path) != after.get(path)]


def replace_baselines(run: Folder, job: TrainJob, baselines: Baselines | None) -> None:
    """Writes the run's TrainJob, `job`, with other baselines."""
    write_job(run, job.model_copy(update={"spec": job.spec.model_copy(update={"baselines": baselines})}))


def check_exists(run: Folder) -> None:
    """Raises UserError if the folder of a started run no longer exists."""
    wait_for_file(run, ATTEMPTS, lambda: run.exists(ATTEMPTS))


def wait_for_file(run: Folder, name: str, find: Callable[[], Found]) -> Found:
    """Calls `find` until it returns something for the file `name`, for up to a minute.

    A storage server that has just started may list no files for a while. Raises UserError if the file is gone."""
    if found := find():
        return found
    for _ in range(POLLS):
        run.on_wait(f"waiting for storage: {run.uri}/{name} is missing")
        time.sleep(POLL_SECONDS)
        if found := find():
            run.on_wait("")
            return found
    raise UserError(
        f"{run.uri}: the run's folder, or {name} in it, was removed during the run, so training stops; start it again"
    )


def clear_results(run: Folder) -> None:
    """Deletes the files of earlier attempts, and notifies the user about other files, which stay."""
    others: list[str] = []
    for name in sorted(run.list(), key=lambda name: name != SUMMARY):  # first: without it the run has not finished
        if name in _RUN_FILES or _RAY_FILES.fullmatch(name):
            run.delete(name)
        elif not name.startswith(".") and name != ATTEMPTS:
            others.append(name)
    run.delete(ATTEMPTS)  # last: until then the folder is a run's
    if others:
        notify(f"{run.uri}: {listed(others)} stay: they do not belong to the run")


def to_dict(job: TrainJob) -> dict[str, Any]:
    """The TrainJob as in YAML, with all defaults and without secrets."""
    return redacted(job.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"status"}))


def flatten(value: Any, path: str = "") -> dict[str, Any]:
    """Maps paths such as `spec.training.epochs` to the values of nested mappings."""
    if not isinstance(value, dict) or not value:
        return {path: value}
    return {
        inner_path: inner
        for key, item in value.items()
        for inner_path, inner in flatten(item, f"{path}.{key}" if path else key).items()
    }
