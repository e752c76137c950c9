"""Trains a built-in model: prepares the data, and starts the workers that train on it."""

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Any

from trainjob.api import TrainJobSpec
from trainjob.data import Examples, Fitted, check_unchanged, fit, prepare_datasets, prepare_examples, read_datasets
from trainjob.data.batches.prepare import Loading, bytes_of_sets, prepared_tables
from trainjob.data.first_pass.fitting import tell_of_data
from trainjob.data.read.chunking import Mapper, one_by_one
from trainjob.data.read.source import UNLABELLED
from trainjob.data.row_cache import ROW_CACHE
from trainjob.doing import DOING, ROWS
from trainjob.driver.early_workers import AUTO, LOCAL, RAY, local_workers, worker_modules
from trainjob.driver.loader import free_memory, reason_by_files, reason_by_rows, record_loader
from trainjob.errors import UserError, notify
from trainjob.interrupts import in_thread, result_of
from trainjob.launch.fast.late_datasets import LateDatasets
from trainjob.launch.freed_memory import return_freed_memory
from trainjob.launch.local import LocalWorkers
from trainjob.launch.quick_imports import quick_imports
from trainjob.launch.ray_cluster import is_elastic, on_cluster, put, start_ray, wait_until_gone
from trainjob.launch.ray_tasks import RayTasks
from trainjob.launch.ray_train import run_on_ray
from trainjob.launch.row_files import map_rows, save_rows
from trainjob.pretrained.hub import is_cached_only
from trainjob.pretrained.remote_model import local_model
from trainjob.progress.channel import Address, RowsTo
from trainjob.runs.files import FITTED, SPLIT
from trainjob.scratch import scratch_folder
from trainjob.storage import Folder
from trainjob.worker.job import WorkerJob
from trainjob.worker.outcome import Outcome, Stopped
from trainjob.worker.run_job import run_worker_job

KEPT_BYTES = 256 * 2**20
"""A set of rows up to this size is read once on every node and kept; a larger one is streamed in every epoch."""

CACHE_SHARE = 0.25
"""The fraction of this machine's free memory that the first pass may fill with rows for the second pass."""

_TOO_LARGE_FOR_ELASTIC = (
    "spec.workers.minimum: there are more training rows than workers keep in memory "
    f"({KEPT_BYTES // 2**20} MiB), and of rows that are streamed, a changed number of workers cannot continue in the "
    "middle of an epoch: set spec.dataset.loader: dataLoader, which keeps all of them in memory, or leave minimum out"
)

Datasets = Mapping[str, Any]
"""Ray Data's datasets, or functions that return them, by the names of their sets."""

Retry = Callable[[Callable[[], Outcome]], Outcome]
"""Calls a function that trains, and calls it again after a transient error."""


@dataclass
class Stopwatch:
    """Adds up the time spent in its blocks."""

    seconds: float = 0.0

    @contextmanager
    def running(self) -> Generator[None]:
        since = time.perf_counter()
        yield
        self.seconds += time.perf_counter() - since


@dataclass(frozen=True)
class BuiltInTraining:
    """Trains one built-in model, in one attempt of the driver."""

    spec: TrainJobSpec
    run: Folder
    attempt: int
    driver: Address
    threads: int
    """CPU threads of each worker."""
    retry: Retry
    on_start: Callable[[], None]
    """Called when workers start."""
    workers: LocalWorkers | None = None
    """Local workers that import their libraries already."""
    split_notes: Sequence[str] = ()
    """Notes on the split folders of the data."""
    data_time: Stopwatch = field(default_factory=Stopwatch)
    launches: list[float] = field(default_factory=list[float])
    """Times at which workers were started, in seconds since 1970: the first, and one after each failure."""

    def train(self) -> tuple[Outcome, Fitted]:
        assert self.spec.dataset is not None
        if self.spec.dataset.loader == RAY or on_cluster():
            return self._train_on_ray()
        if self.spec.dataset.loader == AUTO and not self._stays_local(reason_by_files(self.spec)):
            return self._train_on_ray()
        return self._train_locally() or self._train_on_ray()

    def _train_locally(self) -> tuple[Outcome, Fitted] | None:
        """Trains without Ray: the workers load their libraries while the driver prepares the data. Returns None where
        the rows are too many for that and the loader is `auto`."""
        assert self.spec.dataset is not None
        with self.workers or local_workers(self.spec) as workers:
            with ROW_CACHE.room(round(CACHE_SHARE * free_memory())):
                fitted, arrays = self._fitted(), workers.folder / "rows"
                if self.spec.dataset.loader == AUTO:
                    if not self._stays_local(reason_by_rows(self.spec, fitted)):
                        return None
                    record_loader(self.run, LOCAL)
                with self._preparing(fitted, twice=False):
                    soft_labels = self._soft_labels(fitted, on_ray=False)
                    save_rows(prepared_tables(self.spec, fitted, soft_labels), arrays)
            return_freed_memory()  # of the rows that were read, while the workers need memory
            work = partial(run_worker_job, self._worker_job(fitted, partial(map_rows, arrays)))
            return self.run_with_retries(partial(workers.run, work)), fitted

    def _stays_local(self, reason_for_ray: str | None) -> bool:
        """Whether there is no reason for Ray. If there is one, records it and notifies the user that Ray Data is
        used."""
        if reason_for_ray is not None:
            notify(f"{reason_for_ray}: Ray Data streams the rows (spec.dataset.loader is auto)")
            record_loader(self.run, RAY)
        return reason_for_ray is None

    def _train_on_ray(self) -> tuple[Outcome, Fitted]:
        assert self.spec.dataset is not None
        if self.workers is not None:
            self.workers.close()
        fitted, train_rows = self.start_on_ray()
        if self.spec.dataset.loader == LOCAL:
            job, _ = self.prepare_rows(fitted, train_rows)
            return result_of(self.start_on_workers(job)), fitted
        return self._train_on_datasets(fitted, train_rows), fitted

    def start_on_ray(self) -> tuple[Fitted, Loading | None]:
        """Joins or starts a Ray cluster while the preprocessor is fitted. With distillation, also returns how to load
        the training rows that the teacher has labeled."""
        tasks = RayTasks()
        with quick_imports(), tasks.waiting():
            fitting = in_thread(partial(self._fitted, tasks))
            library = in_thread(partial(import_module, "ray.train.torch"))
            with local_model(self.spec, weights=False) as model:  # raises before Ray starts, which takes longer
                if model.pretrained is not None:
                    is_cached_only(model.pretrained, ".".join(model.facts.path_of_pretrained))
            start_ray(self.spec, self.threads, worker_modules(self.spec))
            result_of(library)
            tasks.started.set_result(None)
            fitted = result_of(fitting)
        with self.data_time.running():
            train_rows = self._soft_labels(fitted, on_ray=True)  # before workers take the CPUs and GPUs
        self.on_start()
        return fitted, train_rows

    def prepare_rows(self, fitted: Fitted, train_rows: Loading | None) -> tuple[WorkerJob, Datasets | None]:
        """A job with the rows in memory; or with datasets, if the loader is Ray Data and there are too many rows."""
        assert self.spec.dataset is not None
        with self._preparing(fitted, twice=self.spec.dataset.loader != LOCAL):
            if self.spec.dataset.loader == LOCAL:
                return self._worker_job(fitted, put(prepare_examples(self.spec, fitted, train_rows))), None
            datasets = prepare_datasets(self.spec, fitted, train_rows, RowsTo(self.driver))
            row_bytes = fitted.training_row_bytes(self.spec)
            if sum(fitted.rows.values()) * row_bytes > KEPT_BYTES:
                return self._worker_job(fitted, None, self._streamed(fitted)), datasets
            return self._worker_job(fitted, put(read_datasets(datasets))), None

    @contextmanager
    def _preparing(self, fitted: Fitted, twice: bool) -> Generator[None]:
        """Shows and measures the second pass over the rows. `twice`: a source that is split is read for each side."""
        split = 0 if fitted.split is None or not twice else fitted.rows["train"] + fitted.rows["validation"]
        with self.data_time.running():
            DOING.begin("preparing rows", sum(fitted.rows.values()) + split, ROWS)
            yield

    def _streamed(self, fitted: Fitted) -> tuple[str, ...]:
        """The sets that are too large to be kept. Training rows are kept where batches are made of all of them."""
        large = (name for name, size in bytes_of_sets(self.spec, fitted).items() if size > KEPT_BYTES)
        preprocessor = fitted.preprocessor
        keeps = preprocessor.input.packs or preprocessor.target.least_together > 1
        return tuple(name for name in large if name != "train" or not keeps)

    def _soft_labels(self, fitted: Fitted, on_ray: bool) -> Loading | None:
        if self.spec.training.distillation is None:  # without one, torch need not be imported here
            return None
        from trainjob.driver.distillation import soft_labels

        DOING.begin("asking the teacher", None if on_ray else fitted.training_rows, ROWS)
        return soft_labels(self.spec, fitted, self.run, on_ray)

    def _train_on_datasets(self, fitted: Fitted, train_rows: Loading | None) -> Outcome:
        """Prepares the rows while the workers start."""
        with scratch_folder() as scratch:
            datasets = LateDatasets(scratch)
            getters = {name: datasets.getter(name) for name in fitted.rows if name != UNLABELLED}
            training = self.start_on_workers(self._worker_job(fitted, None, self._streamed(fitted)), getters)
            with self._preparing(fitted, twice=True):
                datasets.provide(prepare_datasets(self.spec, fitted, train_rows, RowsTo(self.driver)))
            return_freed_memory()
            return result_of(training)

    def start_on_workers(self, job: WorkerJob, datasets: Datasets | None = None) -> "Future[Outcome]":
        """Starts a job on workers on Ray, and again after each transient error."""

        def once() -> Outcome:
            outcome = run_job_on_ray(job, datasets)
            assert outcome is not None
            return outcome

        return in_thread(partial(self.run_with_retries, once))

    def run_with_retries(self, work: Callable[[], Outcome]) -> Outcome:
        """Calls `work`, which runs workers, and calls it again after each transient error."""

        def once() -> Outcome:
            self.launches.append(time.time())
            return work()

        return self.retry(once)

    def seconds_to_start(self, entered: float, started: float) -> float:
        """Seconds from the driver's start at `started` until its workers began at `entered`, without the preparation of
        data, and without the time of workers that failed."""
        return entered - started - self.data_time.seconds - (self.launches[-1] - self.launches[0])

    def _fitted(self, mapper: Mapper = one_by_one) -> Fitted:
        """Classes, split and preprocessor: those that an earlier attempt has saved, or fitted now on rows that `mapper`
        reads."""
        with self.data_time.running():
            folder = self.run / FITTED
            if folder.exists(SPLIT):
                return check_unchanged(self.spec, Fitted.load(folder), mapper)
            fitted = fit(self.spec, mapper, self.split_notes)
            DOING.begin("starting")
            fitted.save(folder)
            tell_of_data(fitted)
            return fitted

    def _worker_job(
        self, fitted: Fitted, examples: Callable[[], dict[str, Examples]] | None, streamed: tuple[str, ...] = ()
    ) -> WorkerJob:
        if "train" in streamed and is_elastic(self.spec):
            raise UserError(_TOO_LARGE_FOR_ELASTIC)
        return WorkerJob(self.spec, self.run, self.attempt, fitted, self.driver, self.threads, examples, streamed)


def run_job_on_ray(job: WorkerJob, datasets: Datasets | None) -> Outcome | None:
    """Runs a job on workers on Ray, and returns what rank 0 returns. If they are told to stop, starts others, which
    continue."""
    work, split = partial(run_worker_job, replace(job, on_ray=True)), list(job.streamed)
    while True:
        ended = run_on_ray(work, job.spec, job.run, job.threads, datasets, split).return_value  # pyrefly: ignore[missing-attribute]
        if not isinstance(ended, Stopped):
            return ended
        wait_until_gone(ended.leaving)
