"""A run's folder: one run at a time, and only the TrainJob that it was begun with may continue it."""

import fcntl
import os
import re
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar, cast

import yaml
from pydantic import AwareDatetime, ValidationError

from trainjob.api import Baselines, TrainJob
from trainjob.errors import TransientError, UserError, listed, notify
from trainjob.redaction import redacted
from trainjob.runs.files import (
    ATTEMPTS,
    BASELINES,
    CHECKPOINTS,
    EVALUATION,
    FITTED,
    LOCK,
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
    TRAINJOB,
    TRIALS,
    VARIANTS,
    VARIANTS_TABLE,
)
from trainjob.runs.refusals import not_a_run, refuse_damaged
from trainjob.schema.base import StrictModel
from trainjob.storage import Folder, storage_errors

Found = TypeVar("Found")

MAY_CHANGE = (
    "spec.baselines",
    "spec.checkpoints.keep",
    "spec.deadlines",
    "spec.head",
    "spec.pods",
    "spec.retries",
    "spec.storage",
    "spec.suspend",
    "spec.tuning.parallel",
    "spec.ttlAfterFinished",
    "spec.rayJobTTLAfterFinished",
    "spec.workers",
)
"""Fields that may differ when a run is continued: they don't change what is trained, nor on which rows."""
_OWN = {
    TRAINJOB,
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
}
_OWN_OF_RAY = re.compile(r"checkpoint_manager_snapshot\.json|checkpoint_\d.*|\.validate_storage_marker")
"""What Ray Train writes into the folder of a function's run."""
LOOKS, SECONDS_BETWEEN_LOOKS = 30, 2.0
"""Until a file is believed to be gone. MinIO that starts on a busy machine has taken more than ten seconds to list what
its disk had."""


class Attempts(StrictModel):
    """How often a run was started and how often it has failed, and when it was first started."""

    started: AwareDatetime
    count: int
    failures: int = 0
    """Of the workers and of the driver, as far as it lived to count them."""


def run_folder(job: TrainJob) -> Folder:
    storage = job.spec.storage
    if storage is not None and storage.uri is None:
        raise UserError(
            "spec.storage.persistentVolumeClaim exists only in a cluster: here, add --set 'spec.storage={uri: runs}'"
        )
    root = Folder(os.path.abspath("runs")) if storage is None else Folder(cast("str", storage.uri), storage.endpoint)
    name, uid = job.metadata.name, job.metadata.uid
    return root / (name if uid is None else f"{name[:200]}-{uid[:8]}")


@contextmanager
def locked(run: Folder) -> Generator[None]:
    """Holds the run's folder for this process, where it is on local disk; freed however the process ends.

    Raises UserError for a folder that holds something else than a run, and TransientError where the run is under way.
    """
    _refuse_strangers(run)
    if "://" in run.uri:
        yield
        return
    with storage_errors(run.uri):
        path = Path(run.uri)
        path.mkdir(parents=True, exist_ok=True)
        lock = (path / LOCK).open("w")
    with lock as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise TransientError(
                f"{run.uri}: this run is under way in another process; wait for it or end it"
            ) from None
        yield


def begin(run: Folder, job: TrainJob) -> Attempts:
    """Counts an attempt. Raises UserError where the folder holds the run of another TrainJob."""
    check_same(run, job)
    attempts = Attempts(started=datetime.now(UTC), count=1)
    if earlier := read_attempts(run):
        attempts = earlier.model_copy(update={"count": earlier.count + 1})
    _write(run, attempts)  # first: it tells that the folder is a run's
    if not run.exists(TRAINJOB):
        write_job(run, job)
    elif not has_results(run):  # the spec may have been corrected since, and its data with it
        run.delete(FITTED)
        write_job(run, job)
    return attempts


def write_job(run: Folder, job: TrainJob) -> None:
    """Write the TrainJob that the run is of."""
    run.write(TRAINJOB, yaml.safe_dump(to_dict(job), sort_keys=False, allow_unicode=True).encode())


def read_job(run: Folder) -> TrainJob:
    """The TrainJob that a run was begun with. Raises UserError where the folder is no run's."""
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
        return TrainJob.model_validate(yaml.safe_load(job_yaml))


def has_results(run: Folder) -> bool:
    """Whether anything has come of the run that another spec would invalidate: fitted rows, or what training wrote."""
    names = set(run.list()) - {TRAINJOB, ATTEMPTS, FITTED, LOGS, TENSORBOARD}
    if any(name in _OWN or _OWN_OF_RAY.fullmatch(name) for name in names):
        return True
    return run.exists(f"{FITTED}/{SPLIT}")


def check_same(run: Folder, job: TrainJob) -> None:
    """Raises UserError where the folder holds results of another TrainJob. A field that an earlier version did not know
    has its default."""
    if not run.exists(TRAINJOB) or not has_results(run):
        return
    begun = read_job(run)
    old, new = flat(to_dict(begun)), flat(to_dict(job))
    changed = [
        f"  {path}: {old.get(path, 'unset')} → {new.get(path, 'unset')}"
        for path in changed_fields(begun, job)
        if not path.startswith(MAY_CHANGE)
    ]
    if changed:
        raise UserError(
            f"{run.uri} holds a run of this name that was begun with another spec:\n"
            + "\n".join(changed)
            + "\nTake the old values back to continue it, --fresh to start anew, or another metadata.name."
        )


def changed_fields(old: TrainJob, new: TrainJob) -> list[str]:
    """Paths of the fields of `spec` that differ."""
    before, after = flat(to_dict(old)), flat(to_dict(new))
    paths = sorted(path for path in before.keys() | after.keys() if path.startswith("spec."))
    return [path for path in paths if before.get(path) != after.get(path)]


def keep_baselines(run: Folder, job: TrainJob, baselines: Baselines | None) -> None:
    """Write the run's TrainJob, `job`, with other baselines."""
    write_job(run, job.model_copy(update={"spec": job.spec.model_copy(update={"baselines": baselines})}))


def check_there(run: Folder) -> None:
    """Raises UserError where the folder of a run that has begun is no longer there."""
    look_again(run, ATTEMPTS, lambda: run.exists(ATTEMPTS))


def look_again(run: Folder, name: str, look: Callable[[], Found]) -> Found:
    """What `look` finds of `name` in the run's folder, asked for a minute until it finds something: a server that has
    just started may for a while know none of its files. Raises UserError where it is no longer there."""
    if found := look():
        return found
    for _ in range(LOOKS):
        run.on_wait(f"waits for the storage: {run.uri}/{name} is not there")
        time.sleep(SECONDS_BETWEEN_LOOKS)
        if found := look():
            run.on_wait("")
            return found
    raise UserError(
        f"{run.uri}: the run's folder, or {name} in it, was removed while the run was under way, so training "
        "stops; start it again"
    )


def count_failure(run: Folder) -> int:
    """Counts a failure and returns how many there have been. Raises StorageError."""
    attempts = read_attempts(run)
    if attempts is None:
        return 1
    counted = attempts.model_copy(update={"failures": attempts.failures + 1})
    _write(run, counted)
    return counted.failures


def clear(run: Folder) -> None:
    """Removes what earlier attempts left, and says what else is there and stays."""
    others: list[str] = []
    for name in sorted(run.list(), key=lambda name: name != SUMMARY):  # first: without it the run has not finished
        if name in _OWN or _OWN_OF_RAY.fullmatch(name):
            run.delete(name)
        elif not name.startswith(".") and name != ATTEMPTS:
            others.append(name)
    run.delete(ATTEMPTS)  # last: until then the folder is a run's
    if others:
        notify(f"{run.uri}: {listed(others)} stay: they are none of the run's own files")


def _refuse_strangers(run: Folder) -> None:
    names = [name for name in run.list() if not name.startswith(".")]
    if names and not run.exists(ATTEMPTS):
        raise UserError(
            f"{not_a_run(run, ATTEMPTS)}. Nothing was touched: choose another metadata.name or spec.storage.uri"
        )


def to_dict(job: TrainJob) -> dict[str, Any]:
    """The TrainJob as YAML has it, with every default filled in, and without secrets."""
    return redacted(job.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"status"}))


def _write(run: Folder, attempts: Attempts) -> None:
    run.write(ATTEMPTS, attempts.model_dump_json(by_alias=True).encode())


def read_attempts(run: Folder) -> Attempts | None:
    """None where the run has not begun. Raises UserError for a file that is none."""
    if not run.exists(ATTEMPTS):
        return None
    try:
        return Attempts.model_validate_json(run.read(ATTEMPTS))
    except ValidationError as error:
        problem = error.errors()[0]["msg"]
        raise UserError(f"{run.uri}/{ATTEMPTS} is damaged or of another version of trainjob: {problem}") from None


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """The values of nested mappings by their paths, such as `spec.training.epochs`."""
    if not isinstance(value, dict) or not value:
        return {path: value}
    return {
        inner_path: inner
        for key, item in value.items()
        for inner_path, inner in flat(item, f"{path}.{key}" if path else key).items()
    }
