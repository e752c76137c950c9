"""Seconds from the command to the first optimizer step and to the end, and of `--help` and `validate`.

The text example with two workers and one epoch on a few hundred rows, through Ray and in local processes, in turns.
"""

import argparse
import csv
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

EXAMPLES = Path(__file__).parent.parent / "examples"
TRAINJOB = [str(Path(sys.executable).parent / "trainjob")]


def small_job(folder: Path, loader: str, rows: int) -> Path:
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
    spec["workers"] = {"count": 2}
    spec["storage"] = {"uri": "runs"}
    document["metadata"]["name"] = loader.lower()
    file = folder / f"{loader}.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


def run(file: Path) -> tuple[float, float]:
    """Seconds to the end of the first step, and of the whole command."""
    since = time.time()
    subprocess.run([*TRAINJOB, "run", str(file), "--fresh"], check=True, stdout=subprocess.DEVNULL)
    end = time.time() - since
    metrics = file.parent / "runs" / file.stem.lower() / "metrics.jsonl"
    first = json.loads(metrics.read_text().splitlines()[0])
    assert first["step"] == 1
    return first["time"] - since, end


def seconds(command: list[str]) -> float:
    since = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - since


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=600)
    arguments = parser.parse_args()
    figures: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        files = [small_job(Path(temporary), loader, arguments.rows) for loader in ("rayData", "dataLoader")]
        for _ in range(arguments.rounds + 1):  # the first warms the disk
            for file in files:
                step, end = run(file)
                figures.setdefault(f"{file.stem}: first step", []).append(step)
                figures.setdefault(f"{file.stem}: end of the command", []).append(end)
            figures.setdefault("trainjob --help", []).append(seconds([*TRAINJOB, "--help"]))
            figures.setdefault("trainjob validate", []).append(seconds([*TRAINJOB, "validate", str(files[0])]))
    print("| | median s | min | max |\n|---|---|---|---|")
    for name, values in figures.items():
        counted = values[1:]
        print(f"| {name} | {statistics.median(counted):.2f} | {min(counted):.2f} | {max(counted):.2f} |")


if __name__ == "__main__":
    main()
