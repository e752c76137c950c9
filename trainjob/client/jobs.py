"""`trainjob.Client`: a Python client of the TrainJobs on a cluster."""

from collections.abc import Iterator, Sequence
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from trainjob.api.trainjob_status import TrainJobStatus
from trainjob.client.folders import started_run
from trainjob.client.runs import OnProgress, Run, TrainJobSource, as_document
from trainjob.cluster import Job as Found
from trainjob.cluster import JobFailed, JobTimeout
from trainjob.runs.files import Part

try:
    from trainjob.cluster.client import Client as Cluster
    from trainjob.cluster.connection import connect
except ModuleNotFoundError as error:
    if not (error.name or "").startswith("kubernetes"):
        raise
    raise ImportError("trainjob.Client needs one more package: pip install 'trainjob[cluster]'") from None

if TYPE_CHECKING:
    import pandas as pd

    from trainjob.generator import TextGenerator
    from trainjob.predictor import Predictor


class Client:
    """The TrainJobs of a cluster. Methods raise ClusterError, a UserError."""

    def __init__(self, context: str | None = None, namespace: str | None = None) -> None:
        """Connects as kubectl does: to a context of the kubeconfig, by default the current one."""
        self._cluster = Cluster(connect(context, namespace))

    @property
    def namespace(self) -> str:
        """The namespace of jobs that do not name another."""
        return self._cluster.namespace

    def submit(self, job: TrainJobSource, overrides: Sequence[str] = ()) -> "Job":
        """Checks a TrainJob and applies it, with the other objects of its file. Raises InvalidDocument."""
        from trainjob.api.manifest import is_train_job, load_manifest, manifest_of

        if isinstance(job, str | Path):
            documents = load_manifest(Path(job), overrides)
        else:
            documents = manifest_of(as_document(job), overrides)
        applied = [self._cluster.apply(document).document for document in documents]
        [submitted] = filter(is_train_job, applied)
        return Job(self._cluster, Found(submitted))

    def jobs(self, namespace: str | None = None, *, all_namespaces: bool = False) -> "list[Job]":
        """The jobs of a namespace, by default the client's, or of all namespaces."""
        found = self._cluster.jobs(None if all_namespaces else namespace or self.namespace)
        return [Job(self._cluster, each) for each in found]

    def job(self, name: str, namespace: str | None = None) -> "Job":
        """The job `name`. Raises NoSuchJob."""
        return Job(self._cluster, self._cluster.job(name, namespace))


class Job:
    """A TrainJob on a cluster, as it was when it was last read. A notebook shows it with its progress."""

    def __init__(self, cluster: Cluster, found: Found) -> None:
        self._cluster, self._found = cluster, found

    def __repr__(self) -> str:
        return f"<Job {self.name} in {self.namespace}: {self._found.phase_and_reason}>"

    @property
    def name(self) -> str:
        return self._found.name

    @property
    def namespace(self) -> str:
        return self._found.namespace

    @property
    def status(self) -> TrainJobStatus:
        return self._found.status

    @property
    def has_ended(self) -> bool:
        """Whether the job has succeeded or failed."""
        return self._found.has_ended

    def refresh(self) -> "Job":
        """Reads the job again. Raises NoSuchJob if it is gone."""
        self._found = self._cluster.job(self.name, self.namespace)
        return self

    def wait(self, timeout: float | None = None, on_progress: OnProgress = lambda _: None) -> "Job":
        """Waits until the job has succeeded. `on_progress` is called with each new state of training.

        Raises JobFailed, JobTimeout after `timeout` seconds, and NoSuchJob if the job is deleted meanwhile.
        """
        for found in self._cluster.follow(self._found, timeout):
            self._found = found
            if self.status.training is not None:
                on_progress(self.status.training)
            if self.has_ended:
                break
        if self.status.phase == "Failed":
            raise JobFailed(f"{self.name}: {self._found.phase_and_reason}: {self.status.message or ''}".rstrip(": "))
        if not self.has_ended:
            raise JobTimeout(f"{self.name} has not ended within {timeout:g} s ({self._found.phase_and_reason})")
        return self

    def logs(self, follow: bool = False) -> Iterator[str]:
        """The lines of the driver's log, with what rank 0 prints. With `follow`, continues until the job ends. Without
        the driver's pod, rank 0's log in the run's folder."""
        from trainjob.cluster.driver_log import driver_lines
        from trainjob.runs.logs import RankLog, attempt_folder, chosen_attempt

        lines = driver_lines(self._cluster, self._found, follow, None, lambda _: None)
        if lines is not None:
            return (line.decode(errors="replace") for line in lines)
        folder = started_run(self._found)
        if (attempt := chosen_attempt(folder, None)) is None:
            return iter(())
        logs = attempt_folder(folder, attempt)
        return iter(RankLog(logs, 0).read(logs.sizes()).decode(errors="replace").splitlines())

    def run(self) -> Run:
        """The job's run in its storage. Raises UserError if there is none yet, or if it is on a volume."""
        return Run(started_run(self._found))

    def metrics(self) -> "pd.DataFrame":
        """What was measured at each step and after each epoch, a row for each; `kind` tells which."""
        return self.run().metrics()

    def predictor(self) -> "Predictor | TextGenerator":
        """The best model; a TextGenerator for a language model."""
        return self.run().predictor()

    def pull(self, folder: str | PathLike[str] | None = None, what: Part = "model") -> Path:
        """Copies the model, the report or all files of the run into a folder, by default one of the job's name, and
        returns the folder. See `trainjob.runs.pull`."""
        from trainjob.runs.pull import pull

        target = Path(folder or self.name)
        pull(started_run(self._found), target, what, lambda *_: None)
        return target

    def suspend(self) -> None:
        """Deletes the job's pods until it is resumed."""
        self._found = self._cluster.suspend(self._found, True)

    def resume(self) -> None:
        """Continues a suspended job from its latest checkpoint."""
        self._found = self._cluster.suspend(self._found, False)

    def delete(self) -> None:
        """Deletes the job with its pods. Its storage stays."""
        self._cluster.delete(self._found)

    def _repr_html_(self) -> str:
        status, training = self.status, self.status.training
        lines = [f"<b>{escape(self.name)}</b> in {escape(self.namespace)}: {escape(self._found.phase_and_reason)}"]
        if status.message:
            lines.append(escape(status.message))
        if training is not None and training.percent is not None:
            lines.append(f'<progress max="100" value="{training.percent:g}"></progress> {training.percent:.0f} %')
        metrics = {} if training is None else training.evaluation or training.metrics
        if metrics:
            lines.append(", ".join(f"{escape(name)} {value:.4g}" for name, value in metrics.items()))
        return "<br>".join(lines)
