"""The folder of a job's run, as it can be reached from this machine."""

import os
from typing import TYPE_CHECKING

from trainjob.api.names import run_name
from trainjob.errors import UserError, notify

if TYPE_CHECKING:
    from trainjob.cluster import ClusterJob
    from trainjob.cluster.client import ClusterClient
    from trainjob.cluster.volume_reader import VolumeReader
    from trainjob.storage import Folder

_readers: "dict[str, VolumeReader]" = {}
"""Pods that read volumes, by the URI of the run that they serve."""


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


def job_folder(client: "ClusterClient", job: "ClusterJob", options: str = "") -> "Folder":
    """The folder of a job's run; `options` name the cluster and namespace in commands that errors suggest. A volume is
    read by a pod, which is deleted when this process ends; a notice names the reason if the pod has to wait.

    Raises UserError if the job has no storage yet; ClusterError if the pod cannot be started."""
    storage, run = job.status.storage, job.run
    if storage is None or run is None:
        raise UserError(f"{job.name} has no storage yet: `trainjob describe {job.name}{options}` shows why")
    if storage.uri is None:
        return _volume_folder(client, job)
    return open_folder(run, storage.endpoint)


def started_run(client: "ClusterClient", job: "ClusterJob", options: str = "") -> "Folder":
    """The same for a job that has begun to train. Raises UserError if it has not."""
    from trainjob.runs.files import ATTEMPTS

    run = job_folder(client, job, options)
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


def _volume_folder(client: "ClusterClient", job: "ClusterJob") -> "Folder":
    """The folder, from a pod that is started first unless this process has one."""
    assert job.status.storage is not None
    claim, run = job.status.storage.persistent_volume_claim, run_name(job.name, job.uid)
    folder = open_folder(f"volume://{job.namespace}/{claim}/{run}")
    if folder.uri not in _readers:
        from trainjob.cluster.volume_reader import VolumeReader
        from trainjob.storage.filesystem import mount
        from trainjob.storage.volume import volume_filesystem

        reader = VolumeReader(client, job, notify)
        reader.start()
        mount(folder.uri, volume_filesystem(reader.pool, folder.uri.partition("://")[2]))
        _readers[folder.uri] = reader
    return folder
