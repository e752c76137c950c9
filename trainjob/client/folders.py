"""The folder of a job's run, as it can be reached from this machine."""

import os
from typing import TYPE_CHECKING

from trainjob.errors import UserError

if TYPE_CHECKING:
    from trainjob.cluster import Job
    from trainjob.storage import Folder


def open_folder(uri: str, endpoint: str | None = None) -> "Folder":
    """A run's folder. AWS_ENDPOINT_URL replaces the `endpoint` of a job's storage, which may have another address
    outside of the cluster."""
    try:
        from trainjob.storage import Folder
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        raise UserError("reading a run's folder needs more packages: pip install 'trainjob[train]'") from None
    return Folder(uri, None if "AWS_ENDPOINT_URL" in os.environ else endpoint)


def job_folder(job: "Job", options: str = "") -> "Folder":
    """The folder of a job's run; `options` name the cluster and namespace in commands that errors suggest.

    Raises UserError if the job has no storage yet, or has it on a volume."""
    storage, run = job.status.storage, job.run
    if storage is None or run is None:
        raise UserError(f"{job.name} has no storage yet: `trainjob describe {job.name}{options}` shows why")
    if storage.uri is None:
        raise UserError(
            f"the run of {job.name} is on the PersistentVolumeClaim {storage.persistent_volume_claim}, which only pods "
            "can read: copy it with the pod of manifests/volume-reader.yaml, as docs/quickstart.md shows, and give the "
            "copied folder"
        )
    return open_folder(run, storage.endpoint)


def started_run(job: "Job", options: str = "") -> "Folder":
    """The same for a job that has begun to train. Raises UserError if it has not."""
    from trainjob.runs.files import ATTEMPTS

    run = job_folder(job, options)
    if not run.exists(ATTEMPTS):
        if job.has_ended:
            raise UserError(
                f"{run.uri} holds no run of {job.name} ({job.phase_and_reason}): it was deleted, or never began"
            )
        raise UserError(
            f"{job.name} has not begun to train ({job.phase_and_reason}): "
            f"`trainjob describe {job.name}{options}` shows why"
        )
    return run
