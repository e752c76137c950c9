"""`trainjob.Client`: a Python client of the TrainJobs on a cluster."""

from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from trainjob.client.folders import started_run
from trainjob.client.job_state import JobState, log_lines, pull, submit, until_success
from trainjob.client.live import live_display
from trainjob.client.runs import OnProgress, Run, TrainJobSource
from trainjob.cluster.client import ClusterClient
from trainjob.cluster.kubeconfig import connect
from trainjob.runs.files import RunFiles

if TYPE_CHECKING:
    import pandas as pd

    from trainjob.generator import TextGenerator
    from trainjob.predictor import Predictor


class Client:
    """The TrainJobs of a cluster. Methods raise ClusterError, a UserError."""

    def __init__(self, context: str | None = None, namespace: str | None = None) -> None:
        """Connects as kubectl does: to a context of the kubeconfig, by default the current one."""
        self._cluster = ClusterClient(connect(context, namespace))

    @property
    def namespace(self) -> str:
        """The namespace of jobs that do not name another."""
        return self._cluster.namespace

    def submit(self, job: TrainJobSource, overrides: Sequence[str] = ()) -> "Job":
        """Checks a TrainJob and applies it, with the other objects of its file. Raises InvalidDocument."""
        return Job(self._cluster, submit(self._cluster, job, overrides))

    def jobs(self, namespace: str | None = None, *, all_namespaces: bool = False) -> "list[Job]":
        """The jobs of a namespace, by default the client's, or of all namespaces."""
        found = self._cluster.jobs(None if all_namespaces else namespace or self.namespace)
        return [Job(self._cluster, each) for each in found]

    def job(self, name: str, namespace: str | None = None) -> "Job":
        """The job `name`. Raises NoSuchJob."""
        return Job(self._cluster, self._cluster.job(name, namespace))


class Job(JobState):
    """A TrainJob on a cluster, as it was when it was last read. A notebook shows it with its progress."""

    def refresh(self) -> "Job":
        """Reads the job again. Raises NoSuchJob if it is gone."""
        self._job = self._cluster.job(self.name, self.namespace)
        return self

    def wait(self, timeout: float | None = None, on_progress: OnProgress = lambda _: None) -> "Job":
        """Waits until the job has succeeded. `on_progress` is called with each new state of training, and a notebook
        shows it.

        Raises JobFailed, JobTimeout after `timeout` seconds, and NoSuchJob if the job is deleted meanwhile.
        """
        show = live_display()
        for found in until_success(self._cluster, self._job, timeout):
            self._job = found
            show(self._repr_html_())
            if self.status.training is not None:
                on_progress(self.status.training)
        return self

    def logs(self, follow: bool = False) -> Iterator[str]:
        """The lines of the driver's log, with what rank 0 prints. With `follow`, continues until the job ends. Without
        the driver's pod, rank 0's log in the run's folder."""
        return log_lines(self._cluster, self._job, follow)

    def run(self) -> Run:
        """The job's run in its storage. Raises UserError if there is none yet. A volume is read by
        a pod, which is deleted when this process ends."""
        return Run(started_run(self._cluster, self._job))

    def metrics(self) -> "pd.DataFrame":
        """The metrics of each step and each epoch, one row each; the column `kind` tells them apart."""
        return self.run().metrics()

    def predictor(self) -> "Predictor | TextGenerator":
        """The best model; a TextGenerator for a language model."""
        return self.run().predictor()

    def pull(self, folder: str | PathLike[str] | None = None, what: RunFiles = "model") -> Path:
        """Copies the model, the report or all files of the run into a folder, by default one of the job's name, and
        returns the folder. See `trainjob.runs.pull`."""
        return pull(self._cluster, self._job, folder, what, lambda *_: None)

    def suspend(self) -> None:
        """Deletes the job's pods until it is resumed."""
        self._job = self._cluster.suspend(self._job, True)

    def resume(self) -> None:
        """Continues a suspended job from its latest checkpoint."""
        self._job = self._cluster.suspend(self._job, False)

    def delete(self) -> None:
        """Deletes the job with its pods. Its storage stays."""
        self._cluster.delete(self._job)
