"""The metrics of a run: `metrics.jsonl`, the segments that follow it, and TensorBoard files in the run's folder.

Object storage can only replace whole files. After SEGMENT_RECORDS records a new file begins, so the bytes that each
checkpoint writes do not grow with the run.
"""

import json
import shutil
import time
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from trainjob.api import Checkpoints
from trainjob.api.numbers import from_json, to_json
from trainjob.runs.files import METRICS, MORE_METRICS, TENSORBOARD
from trainjob.runs.folder import check_exists
from trainjob.storage import Folder

KEYS = ("kind", "step", "epoch", "time")
"""The keys of every record; all other keys are names of metrics."""
_RENAMED = "reported_"
"""Prefix for a metric whose name is one of KEYS."""
REPORTED_EPOCH = f"{_RENAMED}epoch"
SEGMENT_RECORDS = 1000


def recorded_name(metric: str) -> str:
    """The key of a metric in the records."""
    return _RENAMED + metric if metric in KEYS else metric


def read_history(run: Folder) -> list[dict[str, Any]]:
    return list(chain.from_iterable(_read_segments(run)))


def _read_segments(run: Folder) -> list[list[dict[str, Any]]]:
    if not run.exists(METRICS):
        return []
    names = [METRICS, *(f"{MORE_METRICS}/{name}" for name in run.list(MORE_METRICS))]
    return [[_record(line) for line in run.read(name).splitlines()] for name in names]


def _record(line: bytes) -> dict[str, Any]:
    return json.loads(line, object_hook=lambda record: {name: from_json(value) for name, value in record.items()})


def _line(record: dict[str, Any]) -> str:
    return json.dumps({name: to_json(value) for name, value in record.items()}, allow_nan=False) + "\n"


def _segment(number: int) -> str:
    return METRICS if number == 0 else f"{MORE_METRICS}/{number:06d}.jsonl"


def last_metrics(records: list[dict[str, Any]]) -> dict[str, float]:
    """The metrics of the last validation; empty before the first."""
    return next(iter(reversed(_validations(records))), {})


def is_last_best(records: list[dict[str, Any]], checkpoints: Checkpoints) -> bool:
    """Whether the last validation was better than all before it."""
    values = [metrics[checkpoints.metric] for metrics in _validations(records) if checkpoints.metric in metrics]
    return bool(values) and all(checkpoints.improves(values[-1], earlier) for earlier in values[:-1])


def _validations(records: list[dict[str, Any]]) -> list[dict[str, float]]:
    """The metrics of each validation."""
    return [reported_values(record) for record in records if record["kind"] != "step"]


def reported_values(record: dict[str, Any]) -> dict[str, float]:
    """The metrics of a record, under their original names."""
    plain = {name: value for name, value in record.items() if name not in KEYS}
    return {name: plain.pop(recorded_name(name)) for name in KEYS if recorded_name(name) in plain} | plain


def shown_name(metric: str) -> str:
    """The name of a metric in texts: that in the records, so that the step that a function reports is not taken for
    the step of the run. The epoch that it reports is the epoch of the run."""
    return metric if metric == "epoch" else recorded_name(metric)


def beside_epoch(metrics: Mapping[str, float]) -> dict[str, float]:
    """The metrics by their names in texts, to be shown beside the epoch: without `epoch`, which a function may report
    among them."""
    return {shown_name(name): value for name, value in metrics.items() if name != "epoch"}


class History:
    """The records of a run, in memory. `flush` replaces the whole latest segment, so no file is half written."""

    def __init__(self, run: Folder, scratch: Path) -> None:
        """`scratch` is a folder for TensorBoard files that are not uploaded yet."""
        self._run = run
        self.records: list[dict[str, Any]] = []
        self._first_step = 1
        self._segment, self._segment_start = 0, 0
        self._deleted_later_segments = False
        self._plotted = self._in_file = 0
        self._tensorboard = scratch / "tensorboard"

    def resume(self, step: int | None = None) -> int:
        """Loads the records of earlier attempts up to `step` (by default, all) and returns the step of the last one.

        Later records are discarded: their steps are trained again.
        """
        for number, segment in enumerate(_read_segments(self._run)):
            if kept := [record for record in segment if step is None or record["step"] <= step]:
                self._segment, self._segment_start = number, len(self.records)
                self.records += kept
        last = self.records[-1]["step"] if self.records else 0
        self._first_step = last + 1
        self._plotted = len(self.records)
        return last

    def add(
        self, kind: Literal["step", "validation", "epoch"], step: int, epoch: float, values: Mapping[str, float]
    ) -> None:
        named = {recorded_name(name): value for name, value in values.items()}
        self.records.append({**named, "kind": kind, "step": step, "epoch": epoch, "time": time.time()})

    def flush(self) -> None:
        """Writes the new records. Raises UserError if the run's folder no longer exists."""
        check_exists(self._run)
        if not self._deleted_later_segments:
            self._delete_later_segments()
        lines = map(_line, self.records[self._segment_start :])
        self._run.write(_segment(self._segment), "".join(lines).encode())
        if len(self.records) - self._segment_start >= SEGMENT_RECORDS:
            self._segment, self._segment_start = self._segment + 1, len(self.records)
        self._update_tensorboard()

    def _delete_later_segments(self) -> None:
        """Deletes the segments of earlier attempts after the current one: their steps are trained again."""
        for name in reversed(self._run.list(MORE_METRICS)):  # last first, so that an interruption leaves no gap
            if name > f"{self._segment:06d}.jsonl":
                self._run.delete(f"{MORE_METRICS}/{name}")
        self._deleted_later_segments = True

    def _update_tensorboard(self) -> None:
        """Adds the new records to this attempt's TensorBoard files, which supersede those of earlier attempts."""
        for record in self.records[self._plotted :]:
            for name, value in record.items():
                if name not in KEYS:
                    tag = f"{record['kind']}/{name}"
                    self._writer.add_scalar(tag, value, record["step"], walltime=record["time"])
        self._writer.flush()
        (file,) = self._tensorboard.iterdir()
        self._run.upload(file, f"{TENSORBOARD}/{self._file_name}")
        self._in_file += len(self.records) - self._plotted
        self._plotted = len(self.records)
        if self._in_file >= SEGMENT_RECORDS:
            self._start_new_event_file()

    def _start_new_event_file(self) -> None:
        """Starts a new event file, so that the full one is not uploaded again."""
        self._writer.close()
        shutil.rmtree(self._tensorboard)
        del self._opened
        self._first_step, self._in_file = self.records[-1]["step"] + 1, 0

    @property
    def _writer(self) -> Any:
        if not hasattr(self, "_opened"):
            from torch.utils.tensorboard.writer import SummaryWriter

            self._opened = SummaryWriter(str(self._tensorboard), purge_step=self._first_step)
            self._file_name = f"events.out.tfevents.{time.time():.6f}"  # TensorBoard reads them in the order of names
        return self._opened
