"""`model.function`: a Ray Train loop of the user's own, run as it is."""

import importlib
import inspect
import logging
import os
import sys
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import ray
import ray.train
from ray.train import CheckpointConfig, Result

from trainjob.api import Checkpoints, Function, TrainJob
from trainjob.api.training_status import Phase, TrainingStatus
from trainjob.data import check_same_files, raw_datasets
from trainjob.doing import DOING
from trainjob.driver.function_reports import ReportCallback, checkpoint_uri, complete_history, report_python_scalars
from trainjob.driver.summarize import hardware
from trainjob.errors import UserError
from trainjob.interrupts import in_thread, result_of
from trainjob.launch.ray_cluster import start_ray
from trainjob.launch.ray_tasks import RayTasks
from trainjob.launch.ray_train import run_on_ray
from trainjob.launch.worker_errors import WorkerError
from trainjob.progress.channel import Address, Sender
from trainjob.runs.files import FITTED
from trainjob.runs.folder import Attempts
from trainjob.runs.history import last_metrics, read_history
from trainjob.runs.summary import Summary, TrainingWorkers
from trainjob.storage import Folder
from trainjob.versions import versions
from trainjob.worker.log_capture import LogTarget, captured


def train_function(
    job: TrainJob,
    run: Folder,
    source: Path,
    attempts: Attempts,
    driver: Address,
    threads: int,
    retry: Callable[[Callable[[], Result]], Result],
    started: float,
    on_start: Callable[[], None],
) -> Summary:
    """Runs the function on every worker; its checkpoints are Ray Train's, in the run's folder. `on_start` is called
    before the workers start."""
    spec, function = job.spec, job.spec.model.function
    assert function is not None
    find_function(function, source)
    if spec.dataset is not None:
        check_same_files(spec, run / FITTED)
    DOING.begin("starting Ray")
    start_ray(spec, threads)
    tasks = RayTasks()
    tasks.started.set_result(None)
    since = time.perf_counter()
    datasets = raw_datasets(spec, tasks) if spec.dataset is not None else {}
    prepared = time.perf_counter()
    on_start()
    fit = partial(
        run_on_ray,
        partial(_function_loop, function, source, run, LogTarget(run, attempts.count, driver)),
        spec,
        run,
        threads,
        datasets,
        callbacks=[ReportCallback(run, driver)],
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
        metrics=last_metrics(read_history(run)),
        checkpoint=checkpoint_uri(run, result.checkpoint) if result.checkpoint is not None else None,
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


def _function_loop(function: Function, source: Path, run: Folder, output: LogTarget) -> None:
    if source.is_dir():  # on a cluster's workers it is not
        os.chdir(source)
    _say_little_of_ray()
    report_python_scalars()
    rank = ray.train.get_context().get_world_rank()
    try:
        if rank == 0:
            complete_history(run)
            _tell_of_start(output.driver)
        with captured(output, rank):
            found = find_function(function, source)
            if inspect.signature(found).parameters:
                found(dict(function.config))
            else:
                found()
    except SystemExit as error:
        if error.code:  # without a code the function is done, as a script would be
            raise exit_error(error, rank, source) from None
    except Exception as error:
        raise WorkerError(
            rank, type(error).__name__, str(error), traceback.format_exc(), time.time()
        ) from None  # its own type may not travel between processes


def exit_error(error: SystemExit, rank: int, source: Path) -> WorkerError:
    """What to tell of a function that ended its process. It meant to, so there is no traceback."""
    said = f"the function called sys.exit({error.code!r}){_place(error, source)}"
    return WorkerError(rank, "SystemExit", said, "", time.time())


def _tell_of_start(driver: Address | None) -> None:
    if driver is not None:
        sender = Sender(driver)
        sender.send(TrainingStatus(stage="Starting", phase=Phase(name="before the first report")), always=True)
        sender.close()


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
