"""`model.function`: a Ray Train loop of the user's own, run as it is."""

import importlib
import inspect
import logging
import math
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any

import ray
import ray.train
from ray.train import Checkpoint, CheckpointConfig, Result, UserCallback

from trainjob.api import Checkpoints, Function, TrainJob
from trainjob.api.training_status import CheckpointStatus, TrainingStatus
from trainjob.data import check_same_files, raw_datasets
from trainjob.errors import UserError
from trainjob.interrupts import result_of
from trainjob.progress.channel import Address, Sender
from trainjob.runs.files import FITTED
from trainjob.runs.folder import Attempts
from trainjob.runs.history import KEYS, History, read_history
from trainjob.runs.summary import Summary, TrainingWorkers
from trainjob.scratch import scratch_folder
from trainjob.storage import Folder
from trainjob.training.launch.ray_cluster import fit_on_ray, in_thread, start_ray
from trainjob.training.launch.ray_tasks import RayTasks
from trainjob.training.outcome import WorkerError
from trainjob.training.output import Output, kept
from trainjob.training.summarize import hardware, versions


def train_function(
    job: TrainJob,
    run: Folder,
    source: Path,
    attempts: Attempts,
    driver: Address,
    threads: int,
    retry: Callable[[Callable[[], Result]], Result],
    started: float,
) -> Summary:
    """Runs the function on every worker; its checkpoints are Ray Train's, in the run's folder."""
    spec, function = job.spec, job.spec.model.function
    assert function is not None
    find_function(function, source)
    if spec.dataset is not None:
        check_same_files(spec, run / FITTED)
    start_ray(spec, threads)
    tasks = RayTasks()
    tasks.started.set_result(None)
    since = time.perf_counter()
    datasets = raw_datasets(spec, tasks) if spec.dataset is not None else {}
    prepared = time.perf_counter()
    fit = partial(
        fit_on_ray,
        partial(_function_loop, function, source, run, Output(run, attempts.count, driver)),
        spec,
        run,
        threads,
        datasets,
        callbacks=[_ReportCallback(run, driver)],
        checkpoints=_checkpoint_config(spec.checkpoints),
    )
    result = result_of(in_thread(partial(retry, fit)))
    ended = time.perf_counter()
    total = time.time() - started
    return Summary(
        name=job.metadata.name,
        started=attempts.started,
        finished=datetime.now(UTC),
        attempts=attempts.count,
        workers=TrainingWorkers(
            count=spec.workers.count, device="gpu" if spec.workers.gpus else "cpu", threads=threads
        ),
        metrics=_numbers(result.metrics or {}),
        checkpoint=_uri(run, result.checkpoint) if result.checkpoint is not None else None,
        seconds={"start": total - (ended - since), "data": prepared - since, "training": ended - prepared},
        versions=versions(),
        hardware=hardware("cpu"),
    )


def find_function(function: Function, source: Path) -> Callable[..., Any]:
    """The function itself, from a module in the folder `source` or an installed one. Raises UserError."""
    module_name, _, name = function.name.partition(":")
    _look_in(str(source))
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and f"{module_name}.".startswith(f"{error.name}."):
            said = f"there is no module {module_name!r} in {source}, nor is it installed"
        else:
            said = (
                f"the module {module_name!r} cannot be imported: {type(error).__name__}: {error}{_place(error, source)}"
            )
        raise UserError(f"spec.model.function.name: {said}") from None
    found = getattr(module, name, None)
    if not callable(found):
        raise UserError(f"spec.model.function.name: {module.__file__} has no function {name!r}")
    return found


def _look_in(folder: str) -> None:
    """Has Python look for modules in `folder`, before installed ones but after its own: a `random.py` of the user's
    must not be what libraries get."""
    if folder not in sys.path:
        ends = ("site-packages", "dist-packages")
        installed = (index for index, path in enumerate(sys.path) if path.endswith(ends))
        sys.path.insert(next(installed, len(sys.path)), folder)


def _place(error: BaseException, source: Path) -> str:
    """The last line of the user's own files that an error came through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(f"{source}/")]
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


def _function_loop(function: Function, source: Path, run: Folder, output: Output) -> None:
    if source.is_dir():  # on a cluster's workers it is not
        os.chdir(source)
    _say_little_of_ray()
    rank = ray.train.get_context().get_world_rank()
    try:
        if rank == 0:
            _complete_history(run)
        with kept(output, rank):
            found = find_function(function, source)
            if inspect.signature(found).parameters:
                found(dict(function.config))
            else:
                found()
    except Exception as error:
        raise WorkerError(
            rank, type(error).__name__, str(error), traceback.format_exc(), time.time()
        ) from None  # its own type may not travel between processes


def _complete_history(run: Folder) -> None:
    """Adds the report of the latest checkpoint, if the driver was killed after Ray Train had kept that checkpoint and
    before `_ReportCallback` wrote the report."""
    reported = ray.train.get_all_reported_checkpoints(ray.train.CheckpointConsistencyMode.COMMITTED, timeout_s=10)
    if missing := missing_reports([_numbers(each.metrics) for each in reported], read_history(run)):
        with scratch_folder() as scratch:
            history = History(run, scratch)
            for number, values in enumerate(missing, start=history.resume() + 1):
                _add_report(history, number, values)
            history.flush()


def missing_reports(reported: Sequence[dict[str, float]], records: Iterable[dict[str, Any]]) -> list[dict[str, float]]:
    """Those that no record is of; each record is of one report."""
    left = list(records)
    missing: list[dict[str, float]] = []
    for values in reported:
        record = next((each for each in left if _is_of(values, each)), None)
        if record is None:
            missing.append(values)
        else:
            left.remove(record)
    return missing


def _add_report(history: History, number: int, values: dict[str, float]) -> int:
    """Returns its epoch: the one that it names, or else its number."""
    epoch = int(values.get("epoch", number))
    history.add("epoch", number, epoch, values)
    return epoch


def _is_of(values: dict[str, float], record: dict[str, Any]) -> bool:
    """Whether this record may be of a report with these values."""
    is_epoch = "epoch" not in values or record["epoch"] == int(values["epoch"])
    return is_epoch and all(record.get(name) == value for name, value in values.items() if name not in KEYS)


def _say_little_of_ray() -> None:
    """Of Ray's own log records, which would stand between what the function prints, leaves errors only."""
    folder = str(Path(ray.__file__).parent)
    for handler in logging.getLogger().handlers:
        handler.addFilter(lambda record: record.levelno >= logging.ERROR or not record.pathname.startswith(folder))


def _checkpoint_config(spec: Checkpoints) -> CheckpointConfig:
    """Ray Train's rules from `spec.checkpoints`, where it is given; all checkpoints stay otherwise."""
    if not spec.model_fields_set:
        return CheckpointConfig()
    return CheckpointConfig(
        num_to_keep=spec.keep,
        checkpoint_score_attribute=spec.metric,
        checkpoint_score_order="min" if spec.lower_is_better else "max",
    )


def _uri(run: Folder, checkpoint: Checkpoint) -> str:
    """Ray's path of a checkpoint lacks the scheme."""
    scheme, separator, _ = run.uri.partition("://")
    return f"{scheme}{separator}{checkpoint.path}" if separator else checkpoint.path


class _ReportCallback(UserCallback):
    """Tells the driver and the run's folder what rank 0 reports; lives in Ray Train's controller."""

    def __init__(self, run: Folder, driver: Address) -> None:
        self._run, self._driver = run, driver
        self._open: tuple[History, Sender] | None = None
        self._scratch = ExitStack()
        self._reports = 0
        self._latest: CheckpointStatus | None = None

    def after_report(self, run_context: Any, metrics: list[dict[str, Any]], checkpoint: Checkpoint | None) -> None:
        if self._open is None:
            history = History(self._run, self._scratch.enter_context(scratch_folder()))
            self._reports = history.resume()
            self._open = history, Sender(self._driver)
        history, sender = self._open
        self._reports += 1
        values = _numbers(metrics[0])
        if checkpoint is not None:
            self._latest = CheckpointStatus(uri=_uri(self._run, checkpoint), step=self._reports)
        epoch = _add_report(history, self._reports, values)
        history.flush()
        sender.send(
            TrainingStatus(
                stage="Training",
                step=self._reports,
                epoch=epoch,
                epochs_completed=self._reports,
                percent=None,
                workers=len(metrics),
                metrics=values,
                latest_checkpoint=self._latest,
            ),
            always=True,
        )


def _numbers(metrics: dict[str, Any]) -> dict[str, float]:
    """The finite numbers of a report."""
    return {name: float(value) for name, value in metrics.items() if isinstance(value, Real) and math.isfinite(value)}
