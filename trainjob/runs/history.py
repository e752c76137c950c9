"""What a run measured: `metrics.jsonl`, the segments after it, and TensorBoard files in the run's folder.

On object storage a file can only be written whole, so records beyond SEGMENT_RECORDS go into files of their own: what a
checkpoint writes does not grow with the run.
"""

import json
import shutil
import time
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from trainjob.api.numbers import from_json, to_json
from trainjob.runs.files import METRICS, MORE_METRICS, TENSORBOARD
from trainjob.runs.folder import check_there
from trainjob.storage import Folder

KEYS = ("kind", "step", "epoch", "time")
"""Of every record; all else are its values."""
_REPORTED = "reported_"
"""Stands before the name of a value that has one of these names."""
REPORTED_EPOCH = f"{_REPORTED}epoch"
SEGMENT_RECORDS = 1000


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
    """Of the last validation; empty before there is one."""
    validated = [record for record in records if record["kind"] != "step"]
    return reported_values(validated[-1]) if validated else {}


def reported_values(record: dict[str, Any]) -> dict[str, float]:
    """The values of a record by the names that they were given."""
    plain = {name: value for name, value in record.items() if name not in KEYS}
    return {name: plain.pop(_REPORTED + name) for name in KEYS if _REPORTED + name in plain} | plain


class History:
    """Records of a run, kept in memory; a checkpoint writes the latest segment whole, so that no file is torn."""

    def __init__(self, run: Folder, scratch: Path) -> None:
        """TensorBoard's files are written in the folder `scratch` first."""
        self._run = run
        self.records: list[dict[str, Any]] = []
        self._first_step = 1
        self._segment, self._segment_start = 0, 0
        self._took_over = False
        self._drawn = self._in_file = 0
        self._tensorboard = scratch / "tensorboard"

    def resume(self, step: int | None = None) -> int:
        """Takes up the records of earlier attempts up to `step` (by default, all) and returns the last one's step.

        What came after `step` will be measured again.
        """
        for number, segment in enumerate(_read_segments(self._run)):
            if kept := [record for record in segment if step is None or record["step"] <= step]:
                self._segment, self._segment_start = number, len(self.records)
                self.records += kept
        last = self.records[-1]["step"] if self.records else 0
        self._first_step = last + 1
        self._drawn = len(self.records)
        return last

    def add(
        self, kind: Literal["step", "validation", "epoch"], step: int, epoch: float, values: Mapping[str, float]
    ) -> None:
        named = {_REPORTED + name if name in KEYS else name: value for name, value in values.items()}
        self.records.append({**named, "kind": kind, "step": step, "epoch": epoch, "time": time.time()})

    def flush(self) -> None:
        """Writes the records. Raises UserError where the run's folder is no longer there."""
        check_there(self._run)
        if not self._took_over:
            self._drop_later_segments()
        lines = map(_line, self.records[self._segment_start :])
        self._run.write(_segment(self._segment), "".join(lines).encode())
        if len(self.records) - self._segment_start >= SEGMENT_RECORDS:
            self._segment, self._segment_start = self._segment + 1, len(self.records)
        self._draw()

    def _drop_later_segments(self) -> None:
        """Removes what an earlier attempt wrote after the segment to write next: all of that is measured again."""
        for name in reversed(self._run.list(MORE_METRICS)):  # so that none is missing between others
            if name > f"{self._segment:06d}.jsonl":
                self._run.delete(f"{MORE_METRICS}/{name}")
        self._took_over = True

    def _draw(self) -> None:
        """Adds the new records to this attempt's TensorBoard files, which replace what they repeat of earlier ones."""
        for record in self.records[self._drawn :]:
            for name, value in record.items():
                if name not in KEYS:
                    tag = f"{record['kind']}/{name}"
                    self._writer.add_scalar(tag, value, record["step"], walltime=record["time"])
        self._writer.flush()
        (file,) = self._tensorboard.iterdir()
        self._run.upload(file, f"{TENSORBOARD}/{self._file_name}")
        self._in_file += len(self.records) - self._drawn
        self._drawn = len(self.records)
        if self._in_file >= SEGMENT_RECORDS:
            self._begin_file()

    def _begin_file(self) -> None:
        """Has the next records go into another file: this one need not be uploaded again."""
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
