"""What a run measured: `metrics.jsonl` and TensorBoard files in the run's folder."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from trainjob.runs.files import METRICS, TENSORBOARD
from trainjob.runs.folder import check_there
from trainjob.storage import Folder

KEYS = ("kind", "step", "epoch", "time")
"""Of every record; all else are its values."""


def read_history(run: Folder) -> list[dict[str, Any]]:
    if not run.exists(METRICS):
        return []
    return [json.loads(line) for line in run.read(METRICS).splitlines()]


def last_metrics(records: list[dict[str, Any]]) -> dict[str, float]:
    """Of the last epoch that was completed; empty before there is one."""
    epochs = [record for record in records if record["kind"] == "epoch"]
    return {name: value for name, value in epochs[-1].items() if name not in KEYS} if epochs else {}


class History:
    """Records of a run, kept in memory and written whole at each checkpoint, so that a file is never torn."""

    def __init__(self, run: Folder, scratch: Path) -> None:
        """TensorBoard's file is written in the folder `scratch` first."""
        self._run = run
        self.records: list[dict[str, Any]] = []
        self._first_step = 1
        self._drawn = 0
        self._tensorboard = scratch / "tensorboard"

    def resume(self, step: int | None = None) -> int:
        """Takes up the records of earlier attempts up to `step` (by default, all) and returns the last one's step.

        What came after `step` will be measured again.
        """
        self.records = [record for record in read_history(self._run) if step is None or record["step"] <= step]
        last = self.records[-1]["step"] if self.records else 0
        self._first_step = last + 1
        self._drawn = len(self.records)
        return last

    def add(self, kind: Literal["step", "epoch"], step: int, epoch: int, values: Mapping[str, float]) -> None:
        self.records.append({**values, "kind": kind, "step": step, "epoch": epoch, "time": time.time()})

    def flush(self) -> None:
        """Writes the records. Raises UserError where the run's folder is no longer there."""
        check_there(self._run)
        self._run.write(METRICS, "".join(json.dumps(record) + "\n" for record in self.records).encode())
        self._draw()

    def _draw(self) -> None:
        """Adds the new records to this attempt's TensorBoard file, which replaces what it repeats of earlier ones."""
        for record in self.records[self._drawn :]:
            for name, value in record.items():
                if name not in KEYS:
                    tag = f"{record['kind']}/{name}"
                    self._writer.add_scalar(tag, value, record["step"], walltime=record["time"])
        self._drawn = len(self.records)
        self._writer.flush()
        for file in self._tensorboard.iterdir():
            self._run.upload(file, f"{TENSORBOARD}/{file.name}")

    @property
    def _writer(self) -> Any:
        if not hasattr(self, "_opened"):
            from torch.utils.tensorboard.writer import SummaryWriter

            self._opened = SummaryWriter(str(self._tensorboard), purge_step=self._first_step)
        return self._opened
