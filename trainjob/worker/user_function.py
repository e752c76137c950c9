"""`model.function` on a worker: a Ray Train loop of the user's own, run as it is."""

import importlib
import inspect
import logging
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ray
import ray.train

from trainjob.api import Function
from trainjob.api.training_status import TrainingPhase, TrainingStatus
from trainjob.code import UserCode
from trainjob.errors import UserError
from trainjob.launch.worker_errors import WorkerError
from trainjob.progress.channel import Address, Sender
from trainjob.storage import Folder
from trainjob.worker.function_reports import complete_history, report_python_scalars
from trainjob.worker.log_capture import LogTarget, captured


def find_function(function: Function, source: Path) -> Callable[..., Any]:
    """Imports the function, from a module in the folder `source` or an installed one. Raises UserError."""
    module_name, _, name = function.name.partition(":")
    _add_to_path(str(source))
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and f"{module_name}.".startswith(f"{error.name}."):
            reason = f"there is no module {module_name!r} in {source}, and it is not installed"
        else:
            kind, line = type(error).__name__, _last_user_line(error, source)
            reason = f"the module {module_name!r} cannot be imported: {kind}: {error}{line}"
        raise UserError(f"spec.model.function.name: {reason}") from None
    found = getattr(module, name, None)
    if not callable(found):
        raise UserError(f"spec.model.function.name: {module.__file__} has no function {name!r}")
    return found


def _add_to_path(folder: str) -> None:
    """Adds `folder` to Python's module path, before installed packages but after the standard library: libraries must
    not import a `random.py` of the user's."""
    if folder not in sys.path:
        ends = ("site-packages", "dist-packages")
        installed = (index for index, path in enumerate(sys.path) if path.endswith(ends))
        sys.path.insert(next(installed, len(sys.path)), folder)


def _last_user_line(error: BaseException, source: Path) -> str:
    """The last line of the user's own files in an error's traceback, in parentheses; empty if there is none."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(f"{source}/")]
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


def run_function(function: Function, code: UserCode | None, source: Path, run: Folder, target: LogTarget) -> None:
    """Runs the function on one worker. Raises WorkerError for any exception of the function."""
    if code is not None:
        source = code.activate(source)
    if source.is_dir():  # it does not exist on a cluster's workers
        os.chdir(source)
    _mute_ray_logs()
    report_python_scalars()
    rank = ray.train.get_context().get_world_rank()
    try:
        if rank == 0:
            complete_history(run)
            _report_start(target.driver)
        with captured(target, rank):
            found = find_function(function, source)
            if inspect.signature(found).parameters:
                found(dict(function.config))
            else:
                found()
    except SystemExit as error:
        if error.code:  # without a code the function has finished, as a script would have
            raise exit_error(error, rank, source) from None
    except Exception as error:
        raise WorkerError.caught(rank, error) from None


def exit_error(error: SystemExit, rank: int, source: Path) -> WorkerError:
    """The error for a function that called `sys.exit`. The exit was intended, so there is no traceback."""
    message = f"the function called sys.exit({error.code!r}){_last_user_line(error, source)}"
    return WorkerError(rank, "SystemExit", message, "", time.time())


def _report_start(driver: Address | None) -> None:
    if driver is not None:
        sender = Sender(driver)
        sender.send(TrainingStatus(stage="Starting", phase=TrainingPhase(name="before the first report")), always=True)
        sender.close()


def _mute_ray_logs() -> None:
    """Hides Ray's own log records below errors, which would appear between the function's output."""
    folder = str(Path(ray.__file__).parent)
    for handler in logging.getLogger().handlers:
        handler.addFilter(lambda record: record.levelno >= logging.ERROR or not record.pathname.startswith(folder))
    logging.getLogger("ray.data").setLevel(logging.ERROR)  # which has a handler of its own
