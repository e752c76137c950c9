"""A TrainJob on a cluster as it was last read, and what `Client` and `AsyncClient` share."""

from collections.abc import Callable, Iterator, Sequence
from html import escape
from os import PathLike
from pathlib import Path

from trainjob.api.trainjob_status import TrainJobStatus
from trainjob.client.folders import started_run
from trainjob.client.live import progress_html
from trainjob.client.runs import TrainJobSource, as_document
from trainjob.cluster import ClusterJob, JobFailed, JobTimeout
from trainjob.runs.files import RunFiles

try:
    from trainjob.cluster.client import ClusterClient
except ModuleNotFoundError as error:
    if not (error.name or "").startswith("kubernetes"):
        raise
    raise ImportError("trainjob's clients need one more package: pip install 'trainjob[cluster]'") from None


class JobState:
    """A TrainJob on a cluster, as it was when it was last read. A notebook shows it with its progress."""

    def __init__(self, cluster: ClusterClient, found: ClusterJob) -> None:
        self._cluster, self._job = cluster, found

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} in {self.namespace}: {self._job.phase_and_reason}>"

    @property
    def name(self) -> str:
        return self._job.name

    @property
    def namespace(self) -> str:
        return self._job.namespace

    @property
    def status(self) -> TrainJobStatus:
        return self._job.status

    @property
    def has_ended(self) -> bool:
        """Whether the job has succeeded or failed."""
        return self._job.has_ended

    def _repr_html_(self) -> str:
        title = f"<b>{escape(self.name)}</b> in {escape(self.namespace)}: {escape(self._job.phase_and_reason)}"
        return progress_html(title, [self._job.message], self.status.training)


def submit(cluster: ClusterClient, job: TrainJobSource, overrides: Sequence[str]) -> ClusterJob:
    """Checks a TrainJob and applies it, with the other objects of its file. Raises InvalidDocument."""
    from trainjob.api.manifest import is_train_job, load_manifest, manifest_of

    if isinstance(job, str | Path):
        documents = load_manifest(Path(job), overrides)
    else:
        documents = manifest_of(as_document(job), overrides)
    applied = [cluster.apply(document).document for document in documents]
    [submitted] = filter(is_train_job, applied)
    return ClusterJob(submitted)


def until_success(cluster: ClusterClient, job: ClusterJob, timeout: float | None) -> Iterator[ClusterJob]:
    """Yields the job, and again whenever it changes, until it has succeeded. Raises JobFailed, JobTimeout after
    `timeout` seconds, and NoSuchJob."""
    last = job
    for last in cluster.follow(job, timeout):
        yield last
        if last.has_ended:
            break
    if last.status.phase == "Failed":
        raise JobFailed(f"{last.name}: {last.phase_and_reason}: {last.message}".rstrip(": "))
    if not last.has_ended:
        state = f"{last.phase_and_reason}: {last.message}".rstrip(": ")
        raise JobTimeout(f"{last.name} has not ended within {timeout:g} s: {state}")


def log_lines(cluster: ClusterClient, job: ClusterJob, follow: bool) -> Iterator[str]:
    """The lines of the driver's log or, without the driver's pod, of rank 0's log in the run's folder."""
    from trainjob.cluster.driver_log import driver_lines
    from trainjob.runs.logs import RankLog, attempt_folder, chosen_attempt

    lines = driver_lines(cluster, job, follow, None, lambda _: None)
    if lines is not None:
        return (line.decode(errors="replace") for line in lines)
    folder = started_run(cluster, job)
    if (attempt := chosen_attempt(folder, None)) is None:
        return iter(())
    logs = attempt_folder(folder, attempt)
    return iter(RankLog(logs, 0).read(logs.sizes()).decode(errors="replace").splitlines())


def pull(
    cluster: ClusterClient,
    job: ClusterJob,
    folder: str | PathLike[str] | None,
    what: RunFiles,
    on_progress: Callable[[int, int], None],
) -> Path:
    """Copies a part of the job's run into a folder, by default one of the job's name, and returns the folder."""
    from trainjob.runs.pull import pull

    target = Path(folder or job.name)
    pull(started_run(cluster, job), target, what, on_progress)
    return target
