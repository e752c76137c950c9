"""`trainjob run`: from a TrainJob to a trained model on this machine, or as the driver of a Ray cluster."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from trainjob.api import TrainJob
from trainjob.data import Fitted
from trainjob.data.read.split_folders import with_recorded_splits, with_split_folders
from trainjob.driver.baseline_comparison import compare_and_report, update_comparison
from trainjob.driver.built_in import BuiltInTraining
from trainjob.driver.loader import resolve_loader
from trainjob.driver.predicted_sources import add_sources
from trainjob.driver.retries import is_retryable, with_retries
from trainjob.driver.summarize import final_fields, reached, summarize, write_pages, write_results
from trainjob.driver.worker_cpus import note_slow_precision, worker_threads
from trainjob.errors import StorageError, Superseded, UserError, notify
from trainjob.evaluation import Scores
from trainjob.interrupts import in_thread, result_of
from trainjob.launch.local import LocalWorkers
from trainjob.launch.ray_cluster import on_cluster, own_address, set_environment
from trainjob.launch.worker_errors import failure_of
from trainjob.progress.channel import Address, ProgressReceiver
from trainjob.progress.snapshots import OnStatus, Snapshots
from trainjob.runs.attempts import Attempts, keeping_failure
from trainjob.runs.comparison import Comparison
from trainjob.runs.contents import read_contents
from trainjob.runs.files import MODEL, PREDICTIONS, REPORT
from trainjob.runs.folder import begin_attempt, check_same_spec, clear_results, read_job, reads_data, run_folder
from trainjob.runs.lock import locked
from trainjob.runs.owner import Owner
from trainjob.runs.summary import Summary, read_summary
from trainjob.scratch import sweep
from trainjob.storage import Folder
from trainjob.tracking.process import tracking


@dataclass(frozen=True)
class Finished:
    """A run that has finished."""

    run: Folder
    summary: Summary
    evaluation: dict[str, Scores]
    """Scores of the best checkpoint, by the name of the set."""
    comparison: Comparison | None
    """The comparison with the baselines, if there are any."""
    already: bool
    """Whether the run had finished before, so that nothing was trained now."""


@dataclass(frozen=True)
class RunRequest:
    """The arguments of one call of `run`."""

    job: TrainJob
    source: Path
    started: float
    fresh: bool
    on_output: Callable[[str], None]
    retries: Callable[[], int]
    workers: LocalWorkers | None


@dataclass(frozen=True)
class _Attempt:
    """One driver's attempt at a run, while it holds the lock of the run's folder."""

    request: RunRequest
    folder: Folder
    attempts: Attempts
    driver: Address
    """The address to which rank 0 reports its progress."""
    snapshots: Snapshots
    split_notes: Sequence[str]
    """Notes on the split folders of the data."""

    @property
    def job(self) -> TrainJob:
        return self.request.job

    def with_retries(self, train: Callable[[], Any]) -> Any:
        """Calls `train` again after transient errors, as often as `spec.retries` allows."""
        return with_retries(
            train, self.job, self.folder, self.attempts, self.snapshots.restarting, self.request.retries
        )


def run(
    job: TrainJob,
    *,
    source: Path,
    started: float,
    fresh: bool = False,
    on_status: OnStatus = lambda _: None,
    on_output: Callable[[str], None] = lambda _: None,
    retries: Callable[[], int] | None = None,
    workers: LocalWorkers | None = None,
) -> Finished:
    """Trains `job`, or continues the run of its name from its latest checkpoint.

    `source` is the folder of the YAML file, where a function's module is searched; `started` is when the command
    started, in seconds since 1970; `fresh` deletes the results of earlier attempts; `on_output` is called with each
    line that rank 0 of a function prints; `retries` returns the current value of `spec.retries`, which may change;
    `workers` are those of `early_workers`, if there are any.

    Raises UserError for what the user can fix, and WorkerError for the error of a worker in the last attempt. After
    Superseded, a UserError, `on_status` is not called: the run is another driver's.
    """
    request = RunRequest(job, source, started, fresh, on_output, retries or (lambda: job.spec.retries), workers)
    set_environment(job.spec)
    sweep()
    snapshots = Snapshots(on_status, job.spec.workers.count)
    owner = Owner(run_folder(job))
    try:
        finished = _run(request, owner, snapshots)
    except Exception as error:
        cause = owner.cause_of(error)
        if isinstance(cause, Superseded):
            snapshots.close()
            raise cause from None
        retryable = is_retryable(job, owner.run, error, request.retries())
        snapshots.end(message="", eta=None, phase=None, failure=failure_of(error, retryable))
        raise
    except KeyboardInterrupt:
        snapshots.close()
        raise
    snapshots.end(**final_fields(job, finished.run, finished.summary, finished.evaluation))
    return finished


def _run(request: RunRequest, owner: Owner, snapshots: Snapshots) -> Finished:
    folder, fresh = owner.run, request.fresh
    has_finished = not fresh and read_summary(folder) is not None
    if not has_finished:
        _check_gpus(request.job)
    job, split_notes = resolve_split_folders(resolve_loader(request.job, folder, fresh), folder, fresh)
    if has_finished:  # without the lock: the run may be on a disk that is read-only
        return _already_finished(job, folder, snapshots)
    with locked(folder):
        if not fresh:
            check_same_spec(folder, job)  # before the claim: a refusal must not end a run that is under way
        owner.claim()
        if fresh:
            clear_results(folder)
        elif read_summary(folder) is not None:  # another driver has finished the run meanwhile
            return _already_finished(job, folder, snapshots)
        return _train(replace(request, job=job), folder, snapshots, split_notes)


def _already_finished(job: TrainJob, folder: Folder, snapshots: Snapshots) -> Finished:
    check_same_spec(folder, job)
    contents = read_contents(folder)
    assert contents.summary is not None
    if not folder.exists(REPORT):  # the attempt that finished the run ended before it wrote the report
        with suppress(StorageError):
            write_pages(folder)
    snapshots.take_up(reached(job, contents.records, contents.trials))
    comparison = update_comparison(job, folder, contents, snapshots)
    return Finished(folder, contents.summary, contents.evaluation, comparison, already=True)


def _train(request: RunRequest, folder: Folder, snapshots: Snapshots, split_notes: Sequence[str]) -> Finished:
    """Trains, or continues from the latest checkpoint."""
    is_users_loop = request.job.spec.model.facts.is_users_loop
    attempts = begin_attempt(folder, request.job, request.started)
    snapshots.preparing(None if is_users_loop else 0.0)
    with (
        keeping_failure(folder),
        tracking(folder, request.job, snapshots.tracked),
        ProgressReceiver(
            snapshots.add, own_address(), request.on_output, lambda steps: snapshots.trial(steps)
        ) as receiver,
    ):
        attempt = _Attempt(request, folder, attempts, receiver.address, snapshots, split_notes)
        return _train_function(attempt) if is_users_loop else _train_model(attempt)


def _train_function(attempt: _Attempt) -> Finished:
    from trainjob.api.unused_fields import tell_of_unused_fields
    from trainjob.code import prepare
    from trainjob.driver.function import train_function

    tell_of_unused_fields(attempt.job)
    code = result_of(in_thread(partial(prepare, attempt.job.spec, attempt.folder)))
    if code is not None:
        attempt.snapshots.code = code.version.name
    summary = train_function(
        attempt.job,
        attempt.folder,
        code=code,
        source=attempt.request.source,
        attempts=attempt.attempts,
        driver=attempt.driver,
        threads=worker_threads(attempt.job.spec),
        retry=attempt.with_retries,
        started=attempt.request.started,
        on_start=attempt.snapshots.starting,
    )
    attempt.snapshots.finishing()
    write_results(attempt.folder, summary, None)
    return Finished(attempt.folder, summary, {}, None, already=False)


def _train_model(attempt: _Attempt) -> Finished:
    """Trains a built-in model, and evaluates it."""
    job, folder, snapshots = attempt.job, attempt.folder, attempt.snapshots
    note_slow_precision(job.spec)
    training = BuiltInTraining(
        job.spec,
        folder,
        attempt=attempt.attempts.count,
        driver=attempt.driver,
        threads=worker_threads(job.spec),
        retry=attempt.with_retries,
        on_start=snapshots.starting,
        workers=attempt.request.workers,
        split_notes=attempt.split_notes,
    )
    if job.spec.tuning is not None:
        from trainjob.driver.tuned import train_tuned

        tuned = train_tuned(job, training, snapshots)
        outcome, fitted = tuned.outcome, tuned.fitted
        seconds = {"data": training.data_time.seconds, "tuning": tuned.searched} | outcome.seconds
        summary = summarize(tuned.job, outcome, attempt.attempts, fitted, training.threads, seconds)
    else:
        outcome, fitted = training.train()
        start = training.seconds_to_start(outcome.entered, attempt.request.started)
        seconds = {"start": start, "data": training.data_time.seconds} | outcome.seconds
        summary = summarize(job, outcome, attempt.attempts, fitted, training.threads, seconds)
    snapshots.finishing()
    if folder.exists(f"{PREDICTIONS}/{MODEL}.parquet"):
        _add_sources(job, folder, fitted)
    write_results(folder, summary, outcome)
    sets = {"validation": outcome.validation, "test": outcome.test}
    evaluation = {name: scores for name, scores in sets.items() if scores is not None}
    return Finished(folder, summary, evaluation, compare_and_report(job, folder, snapshots), already=False)


def resolve_split_folders(job: TrainJob, folder: Folder, fresh: bool) -> tuple[TrainJob, list[str]]:
    """`job` with the split folders of its training data as sets, and notes on these folders. If its run has already
    read the data, the run's sets, without notes."""
    dataset = job.spec.dataset
    notes: list[str] = []
    if dataset is None:
        return job, notes
    if not (fresh or reads_data(folder, job)):
        begun = read_job(folder).spec.dataset
        dataset = dataset if begun is None else with_recorded_splits(dataset, begun)
    else:
        dataset, notes = with_split_folders(dataset, job.spec.storage.endpoint if job.spec.storage else None)
    return job.model_copy(update={"spec": job.spec.model_copy(update={"dataset": dataset})}), notes


def _check_gpus(job: TrainJob) -> None:
    """Raises UserError if this machine lacks the GPUs that the workers ask for."""
    if job.spec.workers.gpus and not on_cluster():
        import torch

        from trainjob.worker.devices import check_gpus

        check_gpus(job.spec.workers, torch.cuda.device_count())


def _add_sources(job: TrainJob, folder: Folder, fitted: Fitted) -> None:
    """Adds to the predictions which rows they are for. The model is trained: if the rows cannot be read again, a Notice
    says so."""
    try:
        add_sources(job.spec, folder, fitted)
    except Superseded:
        raise
    except UserError as error:
        notify(f"the predictions do not say which rows they are for: {error}")
