"""Compares `trainjob run` on a table with a plain `torchrun` loop: pandas.read_csv, then tensors in memory.

Both train the same TabM in two processes in float32, for one epoch with validation, on a CSV file of 45 numbers, 5
categories and a class: rows/s while training, seconds from the command to the first step, and the peak memory of all
processes (PSS, sampled each second). trainjob also checks the rows, finds the types of the columns, and writes
checkpoints, the model and the report. They alternate, in rounds. The network is small by default, so that feeding it
shows.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from memory import peak_gib
from pyarrow import csv
from startup import TORCHRUN, TRAINJOB, first_step, job_file

BARE = Path(__file__).parent / "bare" / "tables.py"
NUMBERS, CATEGORIES, CLASSES = 45, 5, 3
WRITTEN_ROWS = 50_000


class Figures(NamedTuple):
    rows_per_second: float
    first_step: float
    """Seconds from the command to the end of the first step."""
    peak: float
    """GiB of all processes."""
    seconds: float
    """Of the whole command."""


def write_table(path: Path, rows: int) -> None:
    """Writes measurements, counts and skewed amounts, a twentieth of some missing, categories of 3 to 200 values, and a
    class that depends on some of them."""
    chance = np.random.default_rng(0)
    writer = None
    for start in range(0, rows, WRITTEN_ROWS):
        count = min(WRITTEN_ROWS, rows - start)
        normal = chance.standard_normal((count, NUMBERS)).astype(np.float32)
        columns: dict[str, pa.Array] = {}
        for index in range(NUMBERS):
            values, is_missing = normal[:, index], chance.random(count) < (0.05 if index % 9 == 0 else 0)
            if index % 3 == 1:
                columns[f"count-{index}"] = pa.array((values * 100).astype(np.int64), mask=is_missing)
            else:
                amounts = np.exp(values).round(2) if index % 3 else values.round(4)
                columns[f"number-{index}"] = pa.array(amounts, mask=is_missing)
        for index, size in enumerate(np.geomspace(3, 200, CATEGORIES).astype(int)):
            columns[f"category-{index}"] = pa.array(
                np.char.add("value-", chance.integers(size, size=count).astype(str))
            )
        score = normal[:, 0] + normal[:, 1] * normal[:, 2] + chance.standard_normal(count)
        columns["label"] = pa.array(np.char.add("class-", np.digitize(score, [-0.5, 0.5]).astype(str)))
        table = pa.table(columns)
        writer = writer or csv.CSVWriter(path, table.schema)
        writer.write(table)
    assert writer is not None
    writer.close()


def write_job(folder: Path, batch: int, settings: dict[str, int]) -> Path:
    spec = {
        "model": {"tableClassifier": {"tabm": settings}},
        "dataset": {"train": {"uri": "table.csv"}, "label": "label"},
        "training": {"epochs": 1, "batchSize": batch, "precision": "float32"},
        "workers": {"count": 2},
        "storage": {"uri": "runs"},
        "baselines": {},
    }
    return job_file(folder, "table", spec)


def trainjob(file: Path) -> Figures:
    since = time.time()
    peak, seconds = peak_gib([*TRAINJOB, "run", str(file), "--fresh"])
    summary = json.loads((file.parent / "runs" / file.stem / "summary.json").read_text())
    return Figures(summary["samplesPerSecond"], first_step(file) - since, peak, seconds)


def torchrun(table: Path, batch: int, settings: dict[str, int]) -> Figures:
    written, since = table.parent / "written", time.time()
    os.environ["OMP_NUM_THREADS"] = str(max(1, len(os.sched_getaffinity(0)) // 2))
    arguments = [str(table), str(written), str(batch), json.dumps(settings)]
    peak, seconds = peak_gib([*TORCHRUN, "--nproc-per-node=2", str(BARE), *arguments])
    del os.environ["OMP_NUM_THREADS"]
    step, speed = map(float, written.read_text().split())
    return Figures(speed, step - since, peak, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--members", type=int, default=8)
    parser.add_argument("--hidden-size", type=int, default=64)
    parser.add_argument("--blocks", type=int, default=2)
    parser.add_argument("--embedding-size", type=int, default=8)
    arguments = parser.parse_args()
    settings = {
        "members": arguments.members,
        "blocks": arguments.blocks,
        "hiddenSize": arguments.hidden_size,
        "embeddingSize": arguments.embedding_size,
    }
    found: dict[str, list[Figures]] = {"torchrun": [], "trainjob": []}
    with tempfile.TemporaryDirectory() as temporary:
        table = Path(temporary) / "table.csv"
        write_table(table, arguments.rows)
        print(f"{arguments.rows:,} rows, {table.stat().st_size / 2**20:.0f} MiB of CSV\n", flush=True)
        file = write_job(table.parent, arguments.batch, settings)
        print("| round | | rows/s | first step, s | peak GiB | whole command, s |\n|---|---|---|---|---|---|")
        for number in range(arguments.rounds):
            found["torchrun"].append(torchrun(table, arguments.batch, settings))
            found["trainjob"].append(trainjob(file))
            for side, rounds in found.items():
                speed, step, peak, seconds = rounds[-1]
                print(f"| {number} | {side} | {speed:,.0f} | {step:.1f} | {peak:.2f} | {seconds:.1f} |", flush=True)
    for index, name in enumerate(Figures._fields):
        ratios = [ours[index] / bare[index] for ours, bare in zip(found["trainjob"], found["torchrun"], strict=True)]
        shown = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        print(f"\n{name}, trainjob / torchrun: {statistics.median(ratios):.2f} ({shown})")


if __name__ == "__main__":
    main()
