"""A classifier with `spec.tuning`: rows are prepared once, every trial trains on them, and the best one's model becomes
the run's."""

import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

from trainjob.api import TrainJob
from trainjob.api.training_status import Phase, TrainingStatus
from trainjob.api.tuning import set_in, values_of
from trainjob.data import Fitted
from trainjob.driver.built_in import Datasets, Training, run_job_on_ray
from trainjob.driver.retries import may_retry
from trainjob.errors import Diverged, OutOfMemory, StorageError, TransientError
from trainjob.interrupts import in_thread, result_of
from trainjob.launch.ray_cluster import own_address, set_environment, worker_resources
from trainjob.launch.worker_errors import WorkerError, ran_out_of_memory
from trainjob.progress.channel import Address, Receiver, Sender
from trainjob.progress.snapshots import Snapshots
from trainjob.runs.files import CHECKPOINTS, METRICS, MORE_METRICS, TENSORBOARD
from trainjob.runs.folder import begin_attempt, to_dict
from trainjob.runs.history import read_history
from trainjob.runs.trials import Trial, TrialSteps, trial_folder
from trainjob.scratch import scratch_folder
from trainjob.storage import Folder
from trainjob.tuning.board import Board
from trainjob.tuning.search import DRIVER, Measured, TrialFailed, search
from trainjob.worker.job import Task, train
from trainjob.worker.outcome import Outcome

_KNOWN = ("RAY_ADDRESS", "RAY_AUTH_MODE")


@dataclass(frozen=True)
class Tuned:
    """What came of a search."""

    job: TrainJob
    """With the parameters of the best trial."""
    outcome: Outcome
    fitted: Fitted
    searched: float
    """Wall time of the search, in seconds."""


def train_tuned(job: TrainJob, training: Training, snapshots: Snapshots) -> Tuned:
    """Searches, and scores the best trial's model. Raises UserError where no trial has one."""
    tuning, checkpoints = job.spec.tuning, job.spec.checkpoints
    assert tuning is not None
    fitted, train_rows = training.start_on_ray()
    task, datasets = training.prepared(fitted, train_rows)
    board = Board(training.run, tuning, checkpoints, snapshots.add)
    snapshots.trial = board.stepped
    snapshots.search(board.phase)
    epochs, alone = tuning.tuned.get("training.epochs"), _are_alone(task, datasets)
    started = time.perf_counter()
    searching = partial(
        search,
        board,
        _Trainer(job, task, datasets, {name: os.environ[name] for name in _KNOWN if name in os.environ}),
        resources=worker_resources(job.spec, task.threads) if alone else DRIVER,
        reuse=alone,
        retries=job.spec.retries,
        parallel=tuning.parallel,
        epochs=max(values_of(epochs)) if epochs is not None else job.spec.training.epochs,
        asha=tuning.scheduler == "asha",
        lower_is_better=checkpoints.lower_is_better,
    )
    result_of(in_thread(searching))
    snapshots.search(_best_follows)
    searched = time.perf_counter() - started
    best = board.best()
    _take_over(training.run, trial_folder(training.run, best.number))
    chosen = with_parameters(job, best.parameters)
    outcome = result_of(training.on_workers(replace(task, spec=chosen.spec, trains=False), datasets))
    return Tuned(chosen, outcome, fitted, searched)


def _best_follows() -> Phase:
    return Phase(name="starting the best trial's evaluation")


def with_parameters(job: TrainJob, parameters: Mapping[str, Any]) -> TrainJob:
    """`job` with other hyperparameters."""
    document = to_dict(job)
    for path, value in parameters.items():
        set_in(document["spec"], path, value)
    return TrainJob.model_validate(document, by_alias=True, by_name=False)


def _job_of(job: TrainJob, trial: Trial) -> TrainJob:
    """The TrainJob of a trial, which leaves the test set alone."""
    chosen = with_parameters(job, trial.parameters)
    assert chosen.spec.dataset is not None
    dataset = chosen.spec.dataset.model_copy(update={"test": None})
    return chosen.model_copy(update={"spec": chosen.spec.model_copy(update={"tuning": None, "dataset": dataset})})


@dataclass(frozen=True)
class _Trainer:
    """Trains a trial, in a process of Ray Tune's. Picklable."""

    job: TrainJob
    task: Task
    datasets: Datasets | None
    environment: Mapping[str, str]
    """Of the driver, which the processes of a cluster do not share."""

    def __call__(self, trial: Trial, measured: Measured) -> None:
        """Tells every epoch, also those of earlier attempts. Raises TrialFailed and, for what fails the whole run,
        UserError."""
        os.environ.update(self.environment)
        set_environment(self.job.spec)
        assert isinstance(self.task.driver, Address)
        sender = Sender(self.task.driver)
        try:
            self._run(trial, _Epochs(self.job.spec.checkpoints.metric, measured, trial.number, sender))
        finally:
            sender.close()

    def _run(self, trial: Trial, epochs: "_Epochs") -> None:
        folder = trial_folder(self.task.run, trial.number)
        epochs.repeat(folder)
        if trial.state == "failed":
            raise TrialFailed(trial.error)
        if trial.state == "running":
            self._train(_job_of(self.job, trial), folder, epochs)

    def _train(self, job: TrainJob, folder: Folder, epochs: "_Epochs") -> None:
        attempt = begin_attempt(folder, job).count
        task = replace(self.task, spec=job.spec, run=folder, attempt=attempt, evaluates=False)
        for failures in count(1):
            try:
                if _are_alone(task, self.datasets):
                    train(replace(task, driver=epochs.heard))
                else:
                    with Receiver(epochs.heard, own_address()) as receiver:
                        run_job_on_ray(replace(task, driver=receiver.address), self.datasets)
                break
            except StorageError:
                raise
            except (Diverged, OutOfMemory, WorkerError, TransientError) as error:
                hopeless = isinstance(error, Diverged | OutOfMemory) or ran_out_of_memory(error)
                if hopeless or not may_retry(error, failures, job.spec.retries):
                    raise TrialFailed(str(error)) from None
        epochs.repeat(folder)


def _are_alone(task: Task, datasets: Datasets | None) -> bool:
    """Whether a trial's only worker can be the process that Ray Tune starts for it, and another trial's after it: no
    worker has to be started then."""
    return task.spec.workers.count == 1 and datasets is None


class _Epochs:
    """Tells each epoch of a trial once, whether it is heard of by the workers or read in the trial's folder; and the
    driver of its steps."""

    def __init__(self, metric: str, measured: Measured, number: int, driver: Sender) -> None:
        self._metric, self._measured, self._last = metric, measured, 0
        self._number, self._driver = number, driver

    def heard(self, status: TrainingStatus) -> None:
        if status.steps:
            self._driver.send_trial(TrialSteps(self._number, status.step, status.steps))
        if status.metrics:
            self._tell(status.epochs_completed, status.metrics)

    def repeat(self, folder: Folder) -> None:
        for record in read_history(folder):
            if record["kind"] == "epoch":
                self._tell(record["epoch"], record)

    def _tell(self, epoch: int, metrics: Mapping[str, Any]) -> None:
        value = metrics.get(self._metric)
        if epoch > self._last and value is not None and math.isfinite(value):
            self._last = epoch
            self._measured(epoch, value)


def _take_over(run: Folder, trial: Folder) -> None:
    """Makes a trial's checkpoints and measurements the run's."""
    with scratch_folder() as scratch:
        for name in (CHECKPOINTS, METRICS, MORE_METRICS, TENSORBOARD):
            run.delete(name)
            if trial.exists(name):
                trial.download(name, scratch / name)
                run.upload(scratch / name, name)
