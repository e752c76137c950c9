"""Measures how much slower a worker trains while it prints 10 MB/s.

One worker trains a small network. In turn, it prints nothing, prints into a file, and prints as usual: into its log
in the run's folder and, as rank 0, to the driver. Printing into a file shows the cost of Python's `print` itself.
Seconds are those of the worker's processor, in all its threads, so that other programs hardly change the result.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, TextIO

from trainjob.api.load import trainjob_of
from trainjob.driver.run import run
from trainjob.runs.history import read_history

BYTES_PER_SECOND = 10_000_000


def train_loop(config: dict[str, Any]) -> None:
    """Trains in parts of `seconds` each and reports their steps per second."""
    import torch
    from ray import train

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    rows, line = torch.rand(64, 256), "x" * (config["lineBytes"] - 1)

    def steps_per_second(output: TextIO | None) -> tuple[float, float]:
        """Steps and written megabytes per second."""
        steps, written, elapsed, since = 0, 0, 0.0, time.process_time()
        while elapsed < config["seconds"]:
            optimizer.zero_grad()
            model(rows).square().mean().backward()
            optimizer.step()
            steps += 1
            while output is not None and written < elapsed * BYTES_PER_SECOND:
                print(line, file=output)
                written += len(line) + 1
            elapsed = time.process_time() - since
        return steps / elapsed, written / elapsed / 1e6

    steps_per_second(None)
    with tempfile.TemporaryFile("w", buffering=1) as file:
        for _ in range(config["rounds"]):
            silent, file_only = steps_per_second(None)[0], steps_per_second(file)[0]
            file.truncate(0)
            captured, rate = steps_per_second(sys.stdout)
            train.report({"silent": silent, "file": file_only, "captured": captured, "rate": rate})


def rounds(folder: str, config: dict[str, Any]) -> list[dict[str, Any]]:
    """The reports of a run with this configuration."""
    job = trainjob_of(
        {
            "apiVersion": "trainjob.dev/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": f"lines-of-{config['lineBytes']}"},
            "spec": {
                "model": {"function": {"name": "printing:train_loop", "config": config}},
                "storage": {"uri": folder},
            },
        }
    )
    source = Path(__file__).parent
    finished = run(job, source=source, started=time.time(), fresh=True, on_output=lambda _: None)
    return read_history(finished.run)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each part")
    arguments = parser.parse_args()
    names = ("silent", "file", "captured")
    print("| bytes of a line | MB/s | silent steps/s | into a file | captured | than silent | than into a file |")
    print("|---|---|---|---|---|---|---|")
    for size in (100, 1000):
        config = {"lineBytes": size, "rounds": arguments.rounds, "seconds": arguments.seconds}
        with tempfile.TemporaryDirectory() as folder:
            found = rounds(folder, config)
        rate = statistics.median(each["rate"] for each in found)
        steps = " | ".join(f"{statistics.median(each[name] for each in found):.0f}" for name in names)
        costs = " | ".join(f"{_cost(found, than):.1%}" for than in names[:2])
        print(f"| {size} | {rate:.1f} | {steps} | {costs} |", flush=True)


def _cost(found: list[dict[str, Any]], than: str) -> float:
    """The share of steps that a part with captured output takes fewer than the part `than` of its round."""
    return 1 - statistics.median(each["captured"] / each[than] for each in found)


if __name__ == "__main__":
    main()
