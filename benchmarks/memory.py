"""Measures the peak memory of all processes, including Ray's, of one run on two million short texts.

Memory is each process's proportional share (PSS), so pages shared by several processes count once.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
import pyarrow as pa
import yaml
from pyarrow import parquet

GIB = 2**30


def write_texts(path: Path, rows: int) -> None:
    """Writes texts of 3 to 15 words in four classes, as Parquet."""
    chance = random.Random(0)
    words = [f"word{number}" for number in range(20_000)]
    schema = pa.schema({"text": pa.string(), "label": pa.string()})
    with parquet.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, 100_000):
            labels = [f"class-{chance.randrange(4)}" for _ in range(min(100_000, rows - start))]
            texts = [f"{label} " + " ".join(chance.choices(words, k=chance.randint(3, 15))) for label in labels]
            writer.write_table(pa.table({"text": texts, "label": labels}, schema))


def trainjob(folder: Path, loader: str) -> Path:
    spec = {
        "model": {"textClassifier": {"encoder": {"layers": 1, "hiddenSize": 32, "heads": 2}, "maxLength": 32}},
        "dataset": {
            "train": {"uri": "texts.parquet"},
            "validation": {"fraction": 0.05},
            "text": ["text"],
            "label": "label",
            "loader": loader,
        },
        "training": {"epochs": 1, "batchSize": 1024},
        "workers": {"count": 2},
        "storage": {"uri": "runs"},
        "baselines": {},
    }
    document = {"apiVersion": "trainjob.dev/v1alpha1", "kind": "TrainJob", "metadata": {"name": loader.lower()}}
    file = folder / f"{loader}.yaml"
    file.write_text(yaml.safe_dump(document | {"spec": spec}))
    return file


def peak_gib(command: list[str]) -> tuple[float, float]:
    """Runs the command; returns the peak memory of its process tree in GiB, and the seconds."""
    since = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peak = 0

    def watch() -> None:
        nonlocal peak
        while process.poll() is None:
            peak = max(peak, _tree_bytes(process.pid))
            time.sleep(1)

    watcher = threading.Thread(target=watch)
    watcher.start()
    if process.wait() != 0:
        raise SystemExit(f"{command} failed")
    watcher.join()
    return peak / GIB, time.perf_counter() - since


def _tree_bytes(pid: int) -> int:
    total = 0
    try:
        processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    for process in processes:
        try:
            total += process.memory_full_info().pss
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_texts(folder / "texts.parquet", arguments.rows)
        print(f"{arguments.rows:,} texts, {(folder / 'texts.parquet').stat().st_size / 2**20:.0f} MiB of Parquet\n")
        print("| loader | peak GiB, all processes | whole run, s |\n|---|---|---|")
        for loader in ("rayData", "dataLoader"):
            peak, seconds = peak_gib([sys.executable, "-m", "trainjob", "run", str(trainjob(folder, loader))])
            print(f"| {loader} | {peak:.2f} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
