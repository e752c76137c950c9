"""`trainjob run`: from a TrainJob to a trained model on this machine, or as the driver of a Ray cluster."""

import os
import socket
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from trainjob.api import TrainJob, TrainJobSpec
from trainjob.api.training_status import TrainingStatus
from trainjob.data import Examples, Fitted, check_unchanged, fit, prepare_datasets, prepare_examples
from trainjob.errors import StorageError, StorageUnreachable, may_pass
from trainjob.evaluation import Scores
from trainjob.progress.channel import Receiver
from trainjob.progress.snapshots import OnStatus, Snapshots
from trainjob.runs.contents import read_contents
from trainjob.runs.files import FITTED, SUMMARY
from trainjob.runs.folder import Attempts, begin, check_same, clear, count_failure, locked, retries_left, run_folder
from trainjob.runs.summary import Summary
from trainjob.scratch import sweep
from trainjob.storage import Folder
from trainjob.training.imports import quick_imports
from trainjob.training.launch.arrays import load_arrays, save_arrays
from trainjob.training.launch.deferred_datasets import Handover
from trainjob.training.launch.local import LocalWorkers
from trainjob.training.launch.ray_cluster import on_cluster, put, set_environment, start_on_ray, start_ray
from trainjob.training.outcome import Outcome, WorkerError, failure_of
from trainjob.training.summarize import last_words, reached, summarize, write_results
from trainjob.training.task import Task, train

if TYPE_CHECKING:
    from ray.train import Result

KEPT_BYTES = 256 * 2**20
"""Training rows up to this size are read once by every worker and kept; more are streamed in every epoch."""


@dataclass(frozen=True)
class Finished:
    """A run that has come to its end."""

    run: Folder
    summary: Summary
    evaluation: dict[str, Scores]
    """Of the best checkpoint, by part of the data."""
    already: bool
    """Whether it had finished before: nothing was trained now."""


def run(
    job: TrainJob, *, source: Path, started: float, fresh: bool = False, on_status: OnStatus = lambda _: None
) -> Finished:
    """Trains `job`, or continues the run of its name from its latest checkpoint.

    `source` is the folder that the YAML lies in, where a function's module is looked for; `started` is when the
    command started, in seconds since 1970. Raises UserError for what the user can mend, and WorkerError for what
    a worker raised in its last attempt.
    """
    set_environment()
    sweep()
    snapshots = Snapshots(on_status)
    try:
        finished = _run(job, source, started, fresh, snapshots)
    except Exception as error:
        snapshots.end(message="", eta=None, failure=failure_of(error, _is_retryable(job, error)))
        raise
    snapshots.end(**last_words(job, finished.run, finished.summary, finished.evaluation))
    return finished


def _run(job: TrainJob, source: Path, started: float, fresh: bool, snapshots: Snapshots) -> Finished:
    folder = run_folder(job)
    has_finished = not fresh and folder.exists(SUMMARY)
    with nullcontext() if has_finished else locked(folder):  # a finished run may lie on a disk that only can be read
        if fresh:
            clear(folder)
        if folder.exists(SUMMARY):
            check_same(folder, job)
            contents = read_contents(folder)
            assert contents.summary is not None
            snapshots.take_up(reached(job, contents.records))
            return Finished(folder, contents.summary, contents.evaluation, already=True)
        attempts = begin(folder, job)
        is_function = job.spec.model.function is not None
        snapshots.add(TrainingStatus(stage="Preparing", percent=None if is_function else 0.0))
        with Receiver(snapshots.add, _own_address()) as receiver:
            if is_function:
                from trainjob.training.function import train_function

                threads = worker_threads(job.spec)
                summary = train_function(job, folder, source, attempts, receiver.address, threads, started)
                write_results(folder, summary, None)
                return Finished(folder, summary, {}, already=False)
            return _run_classifier(job, folder, attempts, receiver, snapshots, started)


def _is_retryable(job: TrainJob, error: Exception) -> bool:
    """Whether another attempt may end better and is still allowed; in a cluster, counts the failure."""
    if job.metadata.uid is None or isinstance(error, StorageUnreachable):
        return may_pass(error)
    try:
        return count_failure(run_folder(job)) <= job.spec.retries and may_pass(error)
    except StorageError:  # uncounted: the cluster counts attempts, too
        return may_pass(error)


def _run_classifier(
    job: TrainJob, folder: Folder, attempts: Attempts, receiver: Receiver, snapshots: Snapshots, started: float
) -> Finished:
    driver = _Driver(job, folder, attempts, receiver, snapshots)
    outcome = driver.train_locally() if driver.is_local else driver.train_on_ray()
    start = outcome.entered - started - driver.data_seconds
    seconds = {"start": start, "data": driver.data_seconds} | outcome.seconds
    summary = summarize(job, outcome, attempts, driver.fitted, driver.threads, seconds)
    write_results(folder, summary, outcome)
    parts = {"validation": outcome.validation, "test": outcome.test}
    evaluation = {part: scores for part, scores in parts.items() if scores is not None}
    return Finished(folder, summary, evaluation, already=False)


class _Driver:
    """Prepares the data and has the workers train on it."""

    def __init__(
        self, job: TrainJob, folder: Folder, attempts: Attempts, receiver: Receiver, snapshots: Snapshots
    ) -> None:
        spec = job.spec
        assert spec.dataset is not None
        self.spec, self.folder, self.receiver, self.snapshots = spec, folder, receiver, snapshots
        self.retries = retries_left(job, attempts)
        self.is_local = spec.dataset.loader == "dataLoader" and not on_cluster()
        self.threads = worker_threads(spec)
        self.data_seconds = 0.0

    def train_locally(self) -> Outcome:
        """Without Ray: the workers load their libraries while the data is prepared."""
        with LocalWorkers(self.spec.workers.count, self.threads, _modules(self.spec)) as workers:
            self._fit()
            arrays = workers.folder / "rows"
            with self._counted():
                save_arrays(prepare_examples(self.spec, self.fitted), arrays)
            work = partial(train, self._task(partial(load_arrays, arrays)))
            for left in range(self.retries, -1, -1):
                try:
                    return workers.run(work)
                except WorkerError as error:
                    if left == 0:
                        raise
                    self.snapshots.add(TrainingStatus(stage="Starting", message=f"{error}; starting again"))
        raise AssertionError("unreachable")

    def train_on_ray(self) -> Outcome:
        """On a Ray cluster, which starts while the preprocessor is fitted."""

        assert self.spec.dataset is not None
        with quick_imports(), ThreadPoolExecutor(2) as executor:
            meanwhile = [executor.submit(self._fit), executor.submit(import_module, "ray.train.torch")]
            start_ray(self.spec, self.threads)
            for work in meanwhile:
                work.result()
        self.snapshots.add(TrainingStatus(stage="Starting"))
        start = partial(
            start_on_ray,
            spec=self.spec,
            run=self.folder,
            threads=self.threads,
            retries=self.retries,
            driver=self.receiver.address,
        )
        if self.spec.dataset.loader == "dataLoader":
            with self._counted():
                rows = put(prepare_examples(self.spec, self.fitted))
            return _outcome(start(partial(train, self._task(rows))))
        streamed = self.fitted.rows["train"] * self.fitted.preprocessor.row_bytes > KEPT_BYTES
        handover = Handover()
        promised = {name: handover.promise(name) for name in self.fitted.rows}
        training = start(
            partial(train, self._task(None, streamed)),
            datasets=promised,
            split=["train"] if streamed else [],
        )
        with self._counted():
            handover.fulfil(prepare_datasets(self.spec, self.fitted))
        return _outcome(training)

    def _fit(self) -> None:
        with self._counted():
            kept = self.folder / FITTED
            if kept.exists("split.json"):  # written last
                self.fitted = Fitted.load(kept)
                check_unchanged(self.spec, self.fitted)
            else:
                self.fitted = fit(self.spec)
                self.fitted.save(kept)

    @contextmanager
    def _counted(self) -> Generator[None]:
        """Counts the time spent inside as the data's."""
        since = time.perf_counter()
        yield
        self.data_seconds += time.perf_counter() - since

    def _task(self, examples: Callable[[], dict[str, Examples]] | None, streamed: bool = False) -> Task:
        return Task(self.spec, self.folder, self.fitted, self.receiver.address, self.threads, examples, streamed)


def _modules(spec: TrainJobSpec) -> list[str]:
    """What local workers import; transformers takes seconds, so only for the models that need it."""
    models = [] if spec.model.image_classifier is not None else ["trainjob.models.text"]
    return ["trainjob.training.worker", *models]


def _outcome(training: "Future[Result]") -> Outcome:
    outcome = training.result().return_value
    assert isinstance(outcome, Outcome)
    return outcome


def worker_threads(spec: TrainJobSpec) -> int:
    """CPU threads of each worker: what the spec says, or an even share of this machine's cores; one on a cluster."""
    share = 1 if on_cluster() else len(os.sched_getaffinity(0)) / spec.workers.count
    return max(1, int(spec.workers.cpus or share))


def _own_address() -> str:
    """Where workers reach this process: on a cluster, from other machines, too."""
    return socket.gethostbyname(socket.gethostname()) if on_cluster() else "127.0.0.1"
