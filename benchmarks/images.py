"""Compares `trainjob run` on image files with a plain `torchrun` loop that decodes with torchvision.

Both train the same small CNN at 64 x 64 in two processes on 6,000 JPEG files of 320 x 240, for two epochs with
validation: seconds from the command to the first step, and of the whole command. trainjob also writes checkpoints, the
model and the report, and chooses the precision (bfloat16 where the CPU multiplies it); the loop (bare/images.py) trains
in float32. They alternate, in rounds. torchvision is installed into a temporary folder.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image
from startup import job_file
from uv import find_uv_bin

TRAINJOB = [str(Path(sys.executable).parent / "trainjob")]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"]
BARE = Path(__file__).parent / "bare" / "images.py"
TORCHVISION = "torchvision==0.29.2"
SIDE, CLASSES, EPOCHS, BATCH = 64, 4, 2, 64


def write_images(folder: Path, files: int) -> None:
    """Writes noisy pictures in four classes, each with a tint of its own: nine of ten to `train`, the rest to
    `valid`."""
    chance = np.random.default_rng(0)
    for number in range(files):
        name = number % CLASSES
        small = chance.integers(0, 256, (15, 20, 3), np.uint8)
        small[..., name % 3] = small[..., name % 3] // 2 + 60 * (name // 3) + 60
        large = np.asarray(Image.fromarray(small).resize((320, 240), Image.Resampling.BICUBIC)).astype(np.int16)
        noisy = (large + chance.integers(-12, 13, (240, 320, 1))).clip(0, 255).astype(np.uint8)
        target = folder / ("valid" if number // CLASSES % 10 == 0 else "train") / f"class-{name}"
        target.mkdir(parents=True, exist_ok=True)
        Image.fromarray(noisy).save(target / f"{number:05}.jpg", quality=85)


def write_job(folder: Path, loader: str) -> Path:
    spec = {
        "model": {"imageClassifier": {"cnn": {}, "size": {"height": SIDE, "width": SIDE}}},
        "dataset": {
            "train": {"uri": "images/train"},
            "validation": {"uri": "images/valid"},
            "loader": loader,
        },
        "training": {"epochs": EPOCHS, "batchSize": BATCH},
        "workers": {"count": 2},
        "storage": {"uri": "runs"},
        "baselines": {},
    }
    return job_file(folder, loader.lower(), spec)


def trainjob(folder: Path, loader: str) -> tuple[float, float]:
    """Seconds to the end of the first step, and of the whole command."""
    file, since = write_job(folder, loader), time.time()
    subprocess.run([*TRAINJOB, "run", str(file), "--fresh"], check=True, stdout=subprocess.DEVNULL)
    end = time.time() - since
    first = json.loads((folder / "runs" / file.stem / "metrics.jsonl").read_text().splitlines()[0])
    return first["time"] - since, end


def torchrun(folder: Path) -> tuple[float, float]:
    """The same for the plain loop."""
    written, since = folder / "first-step", time.time()
    written.unlink(missing_ok=True)
    threads = max(1, len(os.sched_getaffinity(0)) // 2)
    environment = os.environ | {"PYTHONPATH": str(folder / "packages"), "OMP_NUM_THREADS": str(threads)}
    arguments = [str(folder / "images"), str(written), str(SIDE), str(EPOCHS), str(BATCH)]
    subprocess.run([*TORCHRUN, str(BARE), *arguments], check=True, env=environment)
    return float(written.read_text()) - since, time.time() - since


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--files", type=int, default=6000)
    parser.add_argument("--loaders", nargs="+", default=["auto", "rayData"])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        install = [find_uv_bin(), "pip", "install", "--quiet", "--python", sys.executable, "--no-deps"]
        subprocess.run([*install, "--target", str(folder / "packages"), TORCHVISION], check=True)
        write_images(folder / "images", arguments.files)
        found: dict[str, list[tuple[float, float]]] = {}
        for number in range(arguments.rounds + 1):
            for side in ("torchrun", *arguments.loaders):
                seconds = torchrun(folder) if side == "torchrun" else trainjob(folder, side)
                print(side, *(f"{value:.1f}" for value in seconds), flush=True)
                if number:  # the first round warms the disk
                    found.setdefault(side, []).append(seconds)
    bare = found["torchrun"]
    print("| | first step | of torchrun's | whole command | of torchrun's |\n|---|---|---|---|---|")
    for side, rounds in found.items():
        cells: list[str] = []
        for index in (0, 1):
            cells.append(f"{statistics.median(each[index] for each in rounds):.1f} s")
            ratios = [each[index] / other[index] for each, other in zip(rounds, bare, strict=True)]
            cells.append(f"{statistics.median(ratios):.2f} ({', '.join(f'{ratio:.2f}' for ratio in ratios)})")
        print(f"| {side} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
