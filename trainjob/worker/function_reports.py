"""Saves the numbers that a function reports to Ray Train in the run's folder, and sends them to the driver."""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from decimal import Decimal
from functools import wraps
from numbers import Real
from typing import Any

import ray.train
from ray.train import Checkpoint, UserCallback

from trainjob.api.numbers import not_finite
from trainjob.api.training_status import CheckpointStatus, TrainingStatus
from trainjob.errors import listed
from trainjob.progress.channel import Address, Sender
from trainjob.runs.history import History, read_history, reported_values
from trainjob.scratch import scratch_folder
from trainjob.storage import Folder

MAX_EXACT_INT = 2**53
"""The largest integer that every reader of JSON keeps exact."""

Numbers = dict[str, int | float]


class ReportCallback(UserCallback):
    """Saves and sends the reports of rank 0; runs in Ray Train's controller."""

    def __init__(self, run: Folder, driver: Address) -> None:
        self._run, self._driver = run, driver
        self._open: tuple[History, Sender] | None = None
        self._scratch = ExitStack()
        self._reports = 0
        self._latest: CheckpointStatus | None = None
        self._left_out: set[str] = set()

    def after_report(self, run_context: Any, metrics: list[dict[Any, Any]], checkpoint: Checkpoint | None) -> None:
        """Called by Ray Train once all ranks have reported. If rank 0 reports nothing, another rank's report counts."""
        if self._open is None:
            history = History(self._run, self._scratch.enter_context(scratch_folder()))
            self._reports = history.resume()
            self._open = history, Sender(self._driver)
        history, sender = self._open
        self._reports += 1
        values, others = numbers_of(next(filter(None, metrics), {}))
        if left_out := [name for name in others if name not in self._left_out]:
            self._left_out.update(left_out)
            sender.send_output(
                f"note: the function reports values that are not numbers and are not kept: {listed(left_out)}"
            )
        if checkpoint is not None:
            self._latest = CheckpointStatus(uri=checkpoint_uri(self._run, checkpoint), step=self._reports)
        epoch = epoch_of(values, self._reports)
        history.add("epoch", self._reports, epoch, values)
        history.flush()
        sender.send(
            TrainingStatus(
                stage="Training",
                message=not_finite(values),
                step=self._reports,
                epoch=int(epoch),
                epochs_completed=self._reports,
                percent=None,
                workers=len(metrics),
                metrics=values,
                latest_checkpoint=self._latest,
            ),
            always=True,
        )


def numbers_of(report: Mapping[Any, Any]) -> tuple[Numbers, list[str]]:
    """Returns the numbers of a report by name, and the names of all other values. Nested names are `outer/inner`; an
    empty one is `unnamed`."""
    numbers: Numbers = {}
    others: list[str] = []
    for key, value in report.items():
        name = str(key).encode(errors="replace").decode() or "unnamed"
        if isinstance(value, Mapping):
            inner, inner_others = numbers_of(value)
            numbers |= {f"{name}/{each}": number for each, number in inner.items()}
            others += [f"{name}/{each}" for each in inner_others]
        elif (number := _number(value)) is not None:
            numbers[name] = number
        else:
            others.append(name)
    return numbers, others


def _python_scalar(value: Any) -> Any:
    """Converts a scalar of NumPy, PyTorch or the like to Python's; returns other values unchanged."""
    return value.item() if getattr(value, "shape", None) == () else value


def with_python_scalars(report: Mapping[Any, Any]) -> dict[Any, Any]:
    return {
        key: with_python_scalars(value) if isinstance(value, Mapping) else _python_scalar(value)
        for key, value in report.items()
    }


def report_python_scalars() -> None:
    """Makes `ray.train.report` in this process accept scalars of NumPy and PyTorch. Ray Train fails to save the former
    beside a checkpoint, which ends the run, and rejects the latter."""
    original = ray.train.report

    @wraps(original)
    def report(metrics: dict[str, Any], *arguments: Any, **named: Any) -> None:
        original(with_python_scalars(metrics), *arguments, **named)

    ray.train.report = report


def _number(value: object) -> int | float | None:
    scalar = _python_scalar(value)
    if isinstance(scalar, int) and abs(scalar) <= MAX_EXACT_INT:
        return int(scalar)
    if not isinstance(scalar, Real | Decimal):
        return None
    try:
        return float(scalar)
    except OverflowError:
        return math.inf if scalar > 0 else -math.inf  # pyrefly: ignore[unsupported-operation]


def epoch_of(values: Numbers, number: int) -> int | float:
    """The epoch that a report names, or else its number, from 1."""
    epoch = values.get("epoch", number)
    if not abs(epoch) <= MAX_EXACT_INT:
        return number
    return int(epoch) if epoch == int(epoch) else epoch


def complete_history(run: Folder) -> None:
    """Adds the report of the latest checkpoint, if the driver was killed after Ray Train had saved that checkpoint and
    before `ReportCallback` wrote the report. To be called on a worker."""
    reported = ray.train.get_all_reported_checkpoints(ray.train.CheckpointConsistencyMode.COMMITTED, timeout_s=10)
    if missing := missing_reports([numbers_of(each.metrics)[0] for each in reported], read_history(run)):
        with scratch_folder() as scratch:
            history = History(run, scratch)
            for number, values in enumerate(missing, start=history.resume() + 1):
                history.add("epoch", number, epoch_of(values, number), values)
            history.flush()


def missing_reports(reported: Sequence[Numbers], records: Iterable[dict[str, Any]]) -> list[Numbers]:
    """The reports without a record. Each record is of one report."""
    left = list(records)
    missing: list[Numbers] = []
    for values in reported:
        record = next((each for each in left if _is_of(values, each)), None)
        if record is None:
            missing.append(values)
        else:
            left.remove(record)
    return missing


def _is_of(values: Numbers, record: dict[str, Any]) -> bool:
    """Whether a record can come from a report of these values."""
    recorded = reported_values(record)
    is_epoch = "epoch" not in values or record["epoch"] == epoch_of(values, record["step"])
    return is_epoch and all(_is_same(recorded.get(name), value) for name, value in values.items() if name != "epoch")


def _is_same(recorded: object, value: float) -> bool:
    return recorded == value or (not math.isfinite(value) and (recorded is None or recorded != recorded))


def checkpoint_uri(run: Folder, checkpoint: Checkpoint) -> str:
    """The URI of a checkpoint. Ray's path lacks the scheme."""
    scheme, separator, _ = run.uri.partition("://")
    return f"{scheme}{separator}{checkpoint.path}" if separator else checkpoint.path
