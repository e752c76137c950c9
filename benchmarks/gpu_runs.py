"""Whole `trainjob run`s whose checks need a GPU; run by gpu.py."""

import gzip
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from gpu_checks import Bench

from trainjob.runs.files import SUMMARY

MAX_SECONDS = 240
UNSIGNED_BYTE = 8
"""MNIST's code for the type of its items."""


def trainjob(*arguments: str) -> tuple[int, str]:
    """The command's exit status and output, without colors."""
    command = [sys.executable, "-m", "trainjob", *arguments]
    environment = os.environ | {"COLUMNS": "200", "NO_COLOR": "1"}
    done = subprocess.run(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=MAX_SECONDS,
        check=False,
    )
    return done.returncode, re.sub(r"\s+", " ", done.stdout)


def write(folder: Path, name: str, model: dict[str, Any], dataset: dict[str, Any], **others: Any) -> str:
    """The file of a TrainJob, with its run beside it."""
    spec = {"model": model, "dataset": dataset | {"loader": "dataLoader"}, "storage": {"uri": str(folder / "runs")}}
    job = {
        "apiVersion": "trainjob.dev/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": spec | others,
    }
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(job))
    return str(file)


def images(folder: Path, rows: int, side: int) -> dict[str, Any]:
    """A data set in MNIST's format: noise that is brighter in each class."""
    chance, labels = np.random.default_rng(0), np.arange(rows) % 3
    pixels = chance.integers(0, 120, (rows, side, side)) + 60 * labels[:, None, None]
    for kind, values in (("images-idx3", pixels), ("labels-idx1", labels)):
        header = bytes([0, 0, UNSIGNED_BYTE, values.ndim]) + np.array(values.shape, ">u4").tobytes()
        with gzip.open(folder / f"train-{kind}-ubyte.gz", "wb", compresslevel=1) as file:
            file.write(header + values.astype(np.uint8).tobytes())
    return {"train": {"uri": str(folder / "train-images-idx3-ubyte.gz")}, "validation": {"fraction": 0.1}}


def texts(folder: Path) -> dict[str, Any]:
    """Prompts of words, with the reversed words as completions."""
    chance = np.random.default_rng(0)
    words = np.array([f"w{number}" for number in range(50)])
    rows = [words[chance.integers(50, size=4)] for _ in range(4000)]
    prompts, completions = [" ".join(row) + " :" for row in rows], [" " + " ".join(row[::-1]) for row in rows]
    pd.DataFrame({"prompt": prompts, "completion": completions}).to_csv(folder / "texts.csv", index=False)
    columns = {"prompt": "prompt", "completion": "completion"}
    return {"train": {"uri": str(folder / "texts.csv")}, "validation": {"fraction": 0.1}, **columns}


def image_run(bench: Bench) -> str:
    """A run on the GPU succeeds."""
    folder = fresh(bench, "image-run")
    model = {"imageClassifier": {"cnn": {"channels": [16, 32]}}}
    file = write(
        folder,
        "images",
        model,
        images(folder, 3000, 28),
        training={"epochs": 3, "batchSize": 64},
        workers={"gpus": gpus_of(bench)},
    )
    since = time.perf_counter()
    code, said = trainjob("run", file)
    assert code == 0, said[-1500:]
    return f"{time.perf_counter() - since:.1f} s; {stages(folder / 'runs' / 'images')}"


def language_run(bench: Bench) -> str:
    """A language model learns to reverse words on the GPU, and generates text there."""
    folder = fresh(bench, "language-run")
    decoder = {"layers": 4, "hiddenSize": 256, "heads": 4, "dropout": 0.0, "vocabularySize": 512}
    file = write(
        folder,
        "texts",
        {"causalLM": {"decoder": decoder, "maxLength": 256}},
        texts(folder),
        training={
            "epochs": 2 if bench.device.type == "cpu" else 30,
            "batchSize": 8,
            "optimizer": {"adamW": {"learningRate": 1e-3}},
            "scheduler": {"cosine": {"warmupFraction": 0.1}},
            "gradientClipping": 1.0,
        },
        workers={"gpus": gpus_of(bench)},
    )
    since = time.perf_counter()
    code, said = trainjob("run", file)
    seconds = time.perf_counter() - since
    assert code == 0, said[-1500:]
    code, continued = trainjob("predict", str(folder / "runs" / "texts"), "--text", "w1 w2 w3 w4 :")
    assert code == 0, continued[-1500:]
    return f"{seconds:.1f} s; {stages(folder / 'runs' / 'texts')}; continued: {continued[-120:]}"


def too_large(bench: Bench) -> str:
    """A run that exceeds the GPU's memory says which settings to lower."""
    bench.needs_gpu()
    folder = fresh(bench, "too-large")
    model = {"imageClassifier": {"cnn": {"channels": [1024, 1024]}}}
    training = {"epochs": 1, "batchSize": 8192}
    file = write(folder, "large", model, images(folder, 9200, 64), training=training, workers={"gpus": 1})
    code, said = trainjob("run", file)
    assert code != 0, said[-600:]
    assert "lower spec.training.batchSize" in said, said[-1500:]
    return said[-500:]


def two_workers(bench: Bench) -> str:
    """Two workers with one GPU are rejected with a message."""
    bench.needs_gpu()
    folder = fresh(bench, "two-workers")
    workers = {"gpus": 1, "count": 2}
    file = write(folder, "two", {"imageClassifier": {"cnn": {}}}, images(folder, 300, 28), workers=workers)
    code, said = trainjob("run", file)
    assert code != 0, said[-600:]
    assert "spec.workers.count is 2 with a GPU for each worker" in said, said[-1500:]
    return said[-300:]


def stages(run: Path) -> str:
    """The time of each stage of a run."""
    seconds = json.loads((run / SUMMARY).read_text())["seconds"]
    return ", ".join(f"{name} {value:.1f}" for name, value in seconds.items())


def fresh(bench: Bench, name: str) -> Path:
    folder = bench.folder / name
    folder.mkdir()
    return folder


def gpus_of(bench: Bench) -> int:
    return 0 if bench.device.type == "cpu" else 1


RUNS: dict[str, Callable[[Bench], str]] = {
    "run: images": image_run,
    "run: language model": language_run,
    "run: too large": too_large,
    "run: two workers": two_workers,
}
