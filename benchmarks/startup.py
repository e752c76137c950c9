"""Measures seconds from the command to the first step, compared with torchrun; to the end; of `--help` and `validate`.

The text example runs on a few hundred rows for one epoch: through Ray and in local processes with two workers, and in
local processes with four. `bare/first_step.py`, which has no data to prepare, runs under torchrun with as many. All
alternate. Then the shared memory of the local workers is measured.
"""

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
import yaml

EXAMPLES = Path(__file__).parent.parent / "examples"
TRAINJOB = [str(Path(sys.executable).parent / "trainjob")]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
BARE = Path(__file__).parent / "bare" / "first_step.py"
MIB = 2**20


def job_file(folder: Path, name: str, spec: dict[str, Any]) -> Path:
    """Writes a TrainJob of this name."""
    document = {"apiVersion": "trainjob.dev/v1alpha1", "kind": "TrainJob", "metadata": {"name": name}, "spec": spec}
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


def small_job(folder: Path, loader: str, workers: int, rows: int) -> Path:
    """The text example on its first rows, for one epoch."""
    document = yaml.safe_load((EXAMPLES / "docstrings.yaml").read_text())
    spec = document["spec"]
    with (EXAMPLES / spec["dataset"]["train"]["uri"]).open(newline="") as source:
        lines = [line for line, _ in zip(csv.reader(source), range(rows + 1), strict=False)]
    with (folder / "train.csv").open("w", newline="") as target:
        csv.writer(target).writerows(lines)
    spec["dataset"] |= {"train": {"uri": "train.csv"}, "loader": loader}
    del spec["dataset"]["test"]
    spec["training"]["epochs"] = 1
    spec["workers"] = {"count": workers}
    spec["storage"] = {"uri": "runs"}
    spec["baselines"] = {}
    document["metadata"]["name"] = f"{loader.lower()}-{workers}"
    file = folder / f"{document['metadata']['name']}.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


def run(file: Path) -> tuple[float, float]:
    """Seconds to the end of the first step, and of the whole command."""
    since = time.time()
    subprocess.run([*TRAINJOB, "run", str(file), "--fresh"], check=True, stdout=subprocess.DEVNULL)
    end = time.time() - since
    return first_step(file) - since, end


def first_step(file: Path) -> float:
    """The end of the run's first step, in seconds since 1970."""
    metrics = file.parent / "runs" / file.stem / "metrics.jsonl"
    first = json.loads(metrics.read_text().splitlines()[0])
    assert first["step"] == 1
    return first["time"]


def torchrun(folder: Path, workers: int) -> float:
    """Seconds to the end of the first step."""
    written, threads = folder / "first-step", max(1, len(os.sched_getaffinity(0)) // workers)
    since = time.time()
    command = [*TORCHRUN, f"--nproc-per-node={workers}", str(BARE), str(written)]
    subprocess.run(command, check=True, env=os.environ | {"OMP_NUM_THREADS": str(threads)})
    return float(written.read_text()) - since


def seconds(command: list[str]) -> float:
    since = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - since


def memory(command: list[str]) -> list[tuple[float, float]]:
    """Memory of each worker of a run during training in MiB: private, and with its share of shared pages."""
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    for line in driver.stdout:
        if "training" in line:
            break
    servers = psutil.Process(driver.pid).children()
    workers = [worker for server in servers for worker in server.children(recursive=True) or [server]]
    found = [worker.memory_full_info() for worker in workers if worker.memory_info().rss > 100 * MIB]
    driver.communicate()
    return [(info.uss / MIB, info.pss / MIB) for info in found]


def print_table(figures: dict[str, list[float]]) -> None:
    """Prints each row's seconds over all rounds except the first, which warms the disk cache."""
    print("| | median s | min | max |\n|---|---|---|---|")
    for name, (_, *counted) in figures.items():
        print(f"| {name} | {statistics.median(counted):.2f} | {min(counted):.2f} | {max(counted):.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=600)
    arguments = parser.parse_args()
    figures: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        jobs = {
            (loader, workers): small_job(folder, loader, workers, arguments.rows)
            for loader, workers in (("rayData", 2), ("dataLoader", 2), ("dataLoader", 4))
        }
        for _ in range(arguments.rounds + 1):  # the first warms the disk
            for (loader, workers), file in jobs.items():
                step, end = run(file)
                figures.setdefault(f"{loader}, {workers} workers: first step", []).append(step)
                figures.setdefault(f"{loader}, {workers} workers: end of the command", []).append(end)
            for workers in (2, 4):
                bare = torchrun(folder, workers)
                figures.setdefault(f"torchrun, {workers} workers: first step", []).append(bare)
                ratio = figures[f"dataLoader, {workers} workers: first step"][-1] / bare
                figures.setdefault(f"dataLoader beside torchrun, {workers} workers: ratio", []).append(ratio)
            figures.setdefault("trainjob --help", []).append(seconds([*TRAINJOB, "--help"]))
            figures.setdefault("trainjob validate", []).append(
                seconds([*TRAINJOB, "validate", str(jobs["dataLoader", 2])])
            )
        shares = memory([*TRAINJOB, "run", str(jobs["dataLoader", 4]), "--fresh"])
    print_table(figures)
    own, share = (", ".join(f"{value:.0f}" for value in column) for column in zip(*shares, strict=True))
    print(f"\nMiB of each of 4 local workers: of its own (USS) {own}; with its share of what is shared (PSS) {share}")


if __name__ == "__main__":
    main()
