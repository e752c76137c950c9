"""The driver's part in training a classifier: prepares the data and has the workers train on it."""

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

from trainjob.api import TrainJobSpec
from trainjob.data import Examples, Fitted, check_unchanged, fit, prepare_datasets, prepare_examples
from trainjob.data.hub import is_cached_only
from trainjob.data.prepare import Loading
from trainjob.data.source import UNLABELLED
from trainjob.progress.channel import Address
from trainjob.runs.files import FITTED
from trainjob.scratch import scratch_folder
from trainjob.storage import Folder
from trainjob.training.imports import quick_imports
from trainjob.training.launch.arrays import load_arrays, save_arrays
from trainjob.training.launch.late_datasets import LateDatasets
from trainjob.training.launch.local import LocalWorkers
from trainjob.training.launch.ray_cluster import fit_on_ray, in_thread, on_cluster, put, start_ray
from trainjob.training.outcome import Outcome
from trainjob.training.task import Task, train

KEPT_BYTES = 256 * 2**20
"""Training rows up to this size are read once by every worker and kept; more are streamed in every epoch."""

Retry = Callable[[Callable[[], Outcome]], Outcome]
"""Calls what trains, again after a failure that may pass."""


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
class Training:
    """One driver's training of a classifier."""

    spec: TrainJobSpec
    run: Folder
    attempt: int
    driver: Address
    threads: int
    """CPU threads of each worker."""
    retry: Retry
    on_start: Callable[[], None]
    """Is called when workers start."""
    data_time: Stopwatch = field(default_factory=Stopwatch)

    def train(self) -> tuple[Outcome, Fitted]:
        assert self.spec.dataset is not None
        is_local = self.spec.dataset.loader == "dataLoader" and not on_cluster()
        return self._train_locally() if is_local else self._train_on_ray()

    def _train_locally(self) -> tuple[Outcome, Fitted]:
        """Without Ray: the workers' libraries load while the data is prepared."""
        with LocalWorkers(self.spec.workers, self.threads, _modules(self.spec)) as workers:
            fitted, arrays = self._fitted(), workers.folder / "rows"
            with self.data_time.running():
                save_arrays(prepare_examples(self.spec, fitted, self._soft_labels(fitted, on_ray=False)), arrays)
            work = partial(train, self._task(fitted, partial(load_arrays, arrays)))
            return self.retry(partial(workers.run, work)), fitted

    def _train_on_ray(self) -> tuple[Outcome, Fitted]:
        """On a Ray cluster, which starts while the preprocessor is fitted."""
        assert self.spec.dataset is not None
        with quick_imports(), ThreadPoolExecutor(2) as executor:
            fitting, importing = executor.submit(self._fitted), executor.submit(import_module, "ray.train.torch")
            text = self.spec.model.text_classifier
            if text is not None and text.pretrained is not None:
                is_cached_only(text.pretrained)  # raises before Ray starts, which takes longer
            start_ray(self.spec, self.threads)
            importing.result()
            fitted = fitting.result()
        with self.data_time.running():
            train = self._soft_labels(fitted, on_ray=True)  # before workers take the CPUs and GPUs
        self.on_start()
        if self.spec.dataset.loader == "dataLoader":
            return self._train_on_kept_rows(fitted, train), fitted
        return self._train_on_datasets(fitted, train), fitted

    def _soft_labels(self, fitted: Fitted, on_ray: bool) -> Loading | None:
        if self.spec.training.distillation is None:  # without one, torch need not be imported here
            return None
        from trainjob.training.distillation import soft_labels

        return soft_labels(self.spec, fitted, self.run, on_ray)

    def _train_on_kept_rows(self, fitted: Fitted, train_rows: Loading | None) -> Outcome:
        with self.data_time.running():
            rows = put(prepare_examples(self.spec, fitted, train_rows))
        work = partial(train, self._task(fitted, rows))
        return in_thread(partial(self.retry, partial(self._fit_on_ray, work))).result()

    def _train_on_datasets(self, fitted: Fitted, train_rows: Loading | None) -> Outcome:
        streamed = fitted.training_rows * fitted.training_row_bytes(self.spec) > KEPT_BYTES
        with scratch_folder() as scratch:
            datasets = LateDatasets(scratch)
            getters = {name: datasets.getter(name) for name in fitted.rows if name != UNLABELLED}
            work = partial(train, self._task(fitted, None, streamed))
            fit_workers = partial(self._fit_on_ray, work, datasets=getters, split=["train"] if streamed else [])
            training = in_thread(partial(self.retry, fit_workers))
            with self.data_time.running():
                datasets.provide(prepare_datasets(self.spec, fitted, train_rows))
            return training.result()

    def _fit_on_ray(
        self,
        work: Callable[[], Outcome | None],
        datasets: Mapping[str, Any] | None = None,
        split: Sequence[str] = (),
    ) -> Outcome:
        outcome = fit_on_ray(work, self.spec, self.run, self.threads, datasets, split).return_value
        assert isinstance(outcome, Outcome)
        return outcome

    def _fitted(self) -> Fitted:
        """What an earlier attempt has kept in the run's folder, or what is fitted now."""
        with self.data_time.running():
            kept = self.run / FITTED
            if kept.exists("split.json"):  # written last
                fitted = Fitted.load(kept)
                check_unchanged(self.spec, fitted)
                return fitted
            fitted = fit(self.spec)
            fitted.save(kept)
            return fitted

    def _task(self, fitted: Fitted, examples: Callable[[], dict[str, Examples]] | None, streamed: bool = False) -> Task:
        return Task(self.spec, self.run, self.attempt, fitted, self.driver, self.threads, examples, streamed)


def _modules(spec: TrainJobSpec) -> list[str]:
    """What local workers import; transformers takes seconds, so only for the models that need it."""
    models = [] if spec.model.image_classifier is not None else ["trainjob.models.text"]
    return ["trainjob.training.worker", *models]
