"""Searches for hyperparameters (`spec.tuning`): rows are prepared once, every trial trains on them, and the best
trial's model becomes the run's."""

import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

from trainjob.api import TrainJob
from trainjob.api.training_status import TrainingPhase, TrainingStatus
from trainjob.api.tuning import set_in, values_of
from trainjob.data import Fitted
from trainjob.driver.built_in import BuiltInTraining, Datasets, run_job_on_ray
from trainjob.driver.retries import may_retry
from trainjob.errors import Diverged, OutOfMemory, StorageError, TransientError
from trainjob.interrupts import in_thread, result_of
from trainjob.launch.ray_cluster import own_address, set_environment, worker_resources
from trainjob.launch.worker_errors import WorkerError, ran_out_of_memory
from trainjob.progress.channel import Address, ProgressReceiver, Sender
from trainjob.progress.snapshots import Snapshots
from trainjob.runs.files import CHECKPOINTS, METRICS, MORE_METRICS, TENSORBOARD
from trainjob.runs.folder import begin_attempt, to_dict
from trainjob.runs.history import read_history
from trainjob.runs.trials import Trial, TrialSteps, trial_folder
from trainjob.scratch import scratch_folder
from trainjob.storage import Folder
from trainjob.tuning.board import Board
from trainjob.tuning.search import DRIVER, Measured, TrialFailed, search
from trainjob.worker.job import WorkerJob
from trainjob.worker.outcome import Outcome
from trainjob.worker.run_job import run_worker_job

_FORWARDED_VARIABLES = ("RAY_ADDRESS", "RAY_AUTH_MODE")


@dataclass(frozen=True)
class Tuned:
    """The result of a search."""

    job: TrainJob
    """The spec with the parameters of the best trial."""
    outcome: Outcome
    fitted: Fitted
    searched: float
    """Wall time of the search, in seconds."""


def train_tuned(job: TrainJob, training: BuiltInTraining, snapshots: Snapshots) -> Tuned:
    """Searches, and evaluates the best trial's model. Raises UserError if no trial has one."""
    tuning, checkpoints = job.spec.tuning, job.spec.checkpoints
    assert tuning is not None
    fitted, train_rows = training.start_on_ray()
    worker_job, datasets = training.prepare_rows(fitted, train_rows)
    board = Board(training.run, tuning, checkpoints, snapshots.add)
    snapshots.trial = board.stepped
    snapshots.search(board.phase)
    epochs, in_tune = tuning.tuned.get("training.epochs"), _trains_in_tune_process(worker_job, datasets)
    started = time.perf_counter()
    searching = partial(
        search,
        board,
        _Trainer(
            job, worker_job, datasets, {name: os.environ[name] for name in _FORWARDED_VARIABLES if name in os.environ}
        ),
        resources=worker_resources(job.spec, worker_job.threads) if in_tune else DRIVER,
        reuse=in_tune,
        retries=job.spec.retries,
        parallel=tuning.parallel,
        epochs=max(values_of(epochs)) if epochs is not None else job.spec.training.epochs,
        asha=tuning.scheduler == "asha",
        lower_is_better=checkpoints.lower_is_better,
    )
    result_of(in_thread(searching))
    snapshots.search(lambda: TrainingPhase(name="starting the best trial's evaluation"))
    searched = time.perf_counter() - started
    best = board.best()
    _promote_trial(training.run, trial_folder(training.run, best.number))
    chosen = with_parameters(job, best.parameters)
    outcome = result_of(training.start_on_workers(replace(worker_job, spec=chosen.spec, trains=False), datasets))
    return Tuned(chosen, outcome, fitted, searched)


def with_parameters(job: TrainJob, parameters: Mapping[str, Any]) -> TrainJob:
    """`job` with these hyperparameters."""
    document = to_dict(job)
    for path, value in parameters.items():
        set_in(document["spec"], path, value)
    return TrainJob.model_validate(document, by_alias=True, by_name=False)


def _job_of(job: TrainJob, trial: Trial) -> TrainJob:
    """The TrainJob of a trial, which does not use the test set."""
    chosen = with_parameters(job, trial.parameters)
    assert chosen.spec.dataset is not None
    dataset = chosen.spec.dataset.model_copy(update={"test": None})
    return chosen.model_copy(update={"spec": chosen.spec.model_copy(update={"tuning": None, "dataset": dataset})})


@dataclass(frozen=True)
class _Trainer:
    """Trains a trial, in a process of Ray Tune's. Picklable."""

    job: TrainJob
    worker_job: WorkerJob
    datasets: Datasets | None
    environment: Mapping[str, str]
    """Variables of the driver's environment, which the processes of a cluster do not have."""

    def __call__(self, trial: Trial, measured: Measured) -> None:
        """Reports every epoch to `measured`, also those of earlier attempts. Raises TrialFailed, or UserError for an
        error that fails the whole run."""
        os.environ.update(self.environment)
        set_environment(self.job.spec)
        assert isinstance(self.worker_job.driver, Address)
        sender = Sender(self.worker_job.driver)
        try:
            self._run(trial, _EpochReports(self.job.spec.checkpoints.metric, measured, trial.number, sender))
        finally:
            sender.close()

    def _run(self, trial: Trial, epochs: "_EpochReports") -> None:
        folder = trial_folder(self.worker_job.run, trial.number)
        epochs.report_history(folder)
        if trial.state == "failed":
            raise TrialFailed(trial.error)
        if trial.state == "running":
            self._train(_job_of(self.job, trial), folder, epochs)

    def _train(self, job: TrainJob, folder: Folder, epochs: "_EpochReports") -> None:
        attempt = begin_attempt(folder, job).count
        worker_job = replace(self.worker_job, spec=job.spec, run=folder, attempt=attempt, evaluates=False)
        for failures in count(1):
            try:
                if _trains_in_tune_process(worker_job, self.datasets):
                    run_worker_job(replace(worker_job, driver=epochs.on_status))
                else:
                    with ProgressReceiver(epochs.on_status, own_address()) as receiver:
                        run_job_on_ray(replace(worker_job, driver=receiver.address), self.datasets)
                break
            except StorageError:
                raise
            except (Diverged, OutOfMemory, WorkerError, TransientError) as error:
                permanent = isinstance(error, Diverged | OutOfMemory) or ran_out_of_memory(error)
                if permanent or not may_retry(error, failures, job.spec.retries):
                    raise TrialFailed(str(error)) from None
        epochs.report_history(folder)


def _trains_in_tune_process(worker_job: WorkerJob, datasets: Datasets | None) -> bool:
    """Whether the process that Ray Tune starts for a trial, and reuses for others, is also the trial's only worker, so
    that no worker has to be started."""
    return worker_job.spec.workers.count == 1 and datasets is None


class _EpochReports:
    """Reports each epoch of a trial once, whether the workers report it or it is read in the trial's folder; and the
    trial's steps to the driver."""

    def __init__(self, metric: str, measured: Measured, number: int, driver: Sender) -> None:
        self._metric, self._measured, self._last = metric, measured, 0
        self._number, self._driver = number, driver

    def on_status(self, status: TrainingStatus) -> None:
        if status.steps:
            self._driver.send_trial(TrialSteps(self._number, status.step, status.steps))
        if status.metrics:
            self._report(status.epochs_completed, status.metrics)

    def report_history(self, folder: Folder) -> None:
        for record in read_history(folder):
            if record["kind"] == "epoch":
                self._report(record["epoch"], record)

    def _report(self, epoch: int, metrics: Mapping[str, Any]) -> None:
        value = metrics.get(self._metric)
        if epoch > self._last and value is not None and math.isfinite(value):
            self._last = epoch
            self._measured(epoch, value)


def _promote_trial(run: Folder, trial: Folder) -> None:
    """Copies a trial's checkpoints and measurements to the run's folder."""
    with scratch_folder() as scratch:
        for name in (CHECKPOINTS, METRICS, MORE_METRICS, TENSORBOARD):
            run.delete(name)
            if trial.exists(name):
                trial.download(name, scratch / name)
                run.upload(scratch / name, name)
