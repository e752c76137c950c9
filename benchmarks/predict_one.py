"""Measures `trainjob predict` of one text: CPU seconds and seconds of the whole command, compared with a script that
answers the same text by transformers' pipeline. Both alternate; the first round warms the disk cache."""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from startup import TRAINJOB, small_job

TEXT = "Returns the next token."
PIPELINE = (
    "import sys; from transformers import pipeline; print(pipeline('text-classification', sys.argv[1])(sys.argv[2]))"
)


def spent(command: list[str]) -> tuple[float, float]:
    """CPU seconds of a command and its children, and its seconds."""
    before, since = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, time.perf_counter() - since


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", metavar="RUN", help="a run of an encoder from scratch")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = arguments.run
        if run is None:
            file = small_job(Path(folder), "dataLoader", workers=1, rows=600)
            subprocess.run([*TRAINJOB, "run", str(file)], check=True, stdout=subprocess.DEVNULL)
            run = str(Path(folder, "runs", file.stem))
        commands = {
            "trainjob predict": [*TRAINJOB, "predict", run, "--text", TEXT],
            "transformers' pipeline": [sys.executable, "-c", PIPELINE, f"{run}/model", TEXT],
        }
        rounds = [[spent(command) for command in commands.values()] for _ in range(arguments.rounds + 1)][1:]
    print("| | CPU s | min | max | s |\n|---|---|---|---|---|")
    for name, found in zip(commands, zip(*rounds, strict=True), strict=True):
        cpu, wall = zip(*found, strict=True)
        values = (statistics.median(cpu), min(cpu), max(cpu), statistics.median(wall))
        print(f"| {name} |", " | ".join(f"{value:.2f}" for value in values), "|")


if __name__ == "__main__":
    main()
