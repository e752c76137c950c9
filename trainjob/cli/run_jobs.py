"""Runs as TrainJobs, for the commands that show both."""

from typing import TYPE_CHECKING, Any

from trainjob.cluster.job import ClusterJob
from trainjob.driver.summarize import final_fields, reached
from trainjob.errors import UserError, notify
from trainjob.runs.attempts import Attempts, read_attempts
from trainjob.runs.contents import read_contents
from trainjob.runs.files import ATTEMPTS, TRAINJOB
from trainjob.runs.lock import holder
from trainjob.runs.refusals import not_a_run

if TYPE_CHECKING:
    from trainjob.storage import Folder


def job_of(run: "Folder", name: str) -> ClusterJob:
    """The run called `name`, with a status from its files. Its phase is Succeeded, Running while a process of this
    machine holds its lock, Failed where an error has ended it, or else missing. Raises UserError if the folder is not a
    run's or is damaged."""
    contents, attempts = read_contents(run), read_attempts(run)
    if attempts is None:
        raise not_a_run(run, ATTEMPTS)
    training = reached(contents.job, contents.records, contents.trials)
    status: dict[str, Any] = {"attempt": attempts.count, "startTime": attempts.started.isoformat()}
    if contents.summary is not None:
        training = training.model_copy(update=final_fields(contents.job, run, contents.summary, contents.evaluation))
        status |= {"phase": "Succeeded", "completionTime": contents.summary.finished.isoformat()}
    else:
        training = training.model_copy(update={"stage": "Training", "percent": None})
        status |= _unfinished(run, attempts)
    metadata = {"name": name, "namespace": "", "uid": "", "creationTimestamp": attempts.started.isoformat()}
    if contents.records or contents.summary is not None:
        status["training"] = training.model_dump(mode="json", by_alias=True)
    return ClusterJob({"metadata": metadata, "spec": {}, "status": status})


def _unfinished(run: "Folder", attempts: Attempts) -> dict[str, str]:
    """Fields of the status of a run without a summary."""
    if holder(run) is not None:
        return {"phase": "Running"}
    if attempts.failure:
        return {"phase": "Failed", "reason": "TrainingFailed", "message": attempts.failure}
    return {"reason": "Unfinished"}


def jobs_in(folder: "Folder", name: str) -> list[ClusterJob]:
    """The runs in a folder, or the run in the folder itself. Notifies the user of runs that cannot be read."""
    if folder.exists(TRAINJOB):
        return [job_of(folder, name)]
    found: list[ClusterJob] = []
    for each in folder.list():
        if not each.startswith(".") and (folder / each).exists(TRAINJOB):
            try:
                found.append(job_of(folder / each, f"{name.rstrip('/')}/{each}"))
            except UserError as error:
                notify(str(error))
    return found
