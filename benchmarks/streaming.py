"""Compares rows/s of a set ten times as large as Ray's object store with the same rows kept in memory.

Both trainings use the same model, rows and workers, one after another in one process. The object store is small, so the
set need not be large. The rate covers only the training steps, over all epochs.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from trainjob.api import TrainJob
from trainjob.driver import built_in
from trainjob.driver.run import run
from trainjob.launch import ray_cluster

MIB = 2**20
TIMES = 10
SIDE = 256
CLASSES = 4


def write_images(folder: Path, rows: int) -> None:
    """Writes small grayscale images of noise, brighter in each class, which are enlarged during preparation."""
    chance = np.random.default_rng(0)
    for number in range(CLASSES):
        (folder / f"class-{number}").mkdir(parents=True)
    for row in range(rows):
        number = row % CLASSES
        pixels = chance.integers(0, 160, (16, 16)) + 20 * number
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"class-{number}" / f"{row:07d}.png")


def trained(folder: Path, name: str, network: dict[str, Any], epochs: int, streams: bool) -> tuple[float, float]:
    """Rows/s during the training steps, and seconds of the whole run."""
    job = TrainJob.model_validate(
        {
            "apiVersion": "trainjob.dev/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": name},
            "spec": {
                "model": {"imageClassifier": {"cnn": network, "size": {"height": SIDE, "width": SIDE}}},
                "dataset": {
                    "train": {"uri": str(folder / "train")},
                    "validation": {"uri": str(folder / "validation")},
                },
                "training": {"epochs": epochs, "batchSize": 64},
                "workers": {"count": 2},
                "storage": {"uri": str(folder / "runs")},
                "baselines": {},
            },
        }
    )
    built_in.KEPT_BYTES = MIB if streams else 2**62
    since = time.perf_counter()
    finished = run(job, source=folder, started=time.time())
    import ray  # not before `run`, which sets Ray's environment

    ray.shutdown()
    assert finished.summary.samples_per_second is not None
    return finished.summary.samples_per_second, time.perf_counter() - since


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=int, default=80, help="MiB of the object store")
    parser.add_argument("--channels", type=int, nargs="+", default=[8, 16], help="how much is computed for a row")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    rows = TIMES * arguments.store * MIB // SIDE**2
    network = {"channels": arguments.channels, "hidden": 32}
    ray_cluster.OBJECT_STORE_BYTES = arguments.store * MIB
    print(f"{rows:,} images of {SIDE} x {SIDE}: {TIMES} times an object store of {arguments.store} MiB\n")
    print("| round | in memory, rows/s | streamed, rows/s | ratio | whole runs, s |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_images(folder / "train", rows)
        write_images(folder / "validation", 40)
        for number in range(arguments.rounds):
            kept, kept_seconds = trained(folder, f"kept-{number}", network, arguments.epochs, False)
            streamed, streamed_seconds = trained(folder, f"streamed-{number}", network, arguments.epochs, True)
            print(
                f"| {number} | {kept:.0f} | {streamed:.0f} | {streamed / kept:.2f} "
                f"| {kept_seconds:.0f}, {streamed_seconds:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
